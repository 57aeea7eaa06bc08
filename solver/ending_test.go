package solver

import (
	"math"
	"testing"
)

// The newest pass can be undone but no earlier one, so the next pass waits for the norm of a sweep if that norm could
// end the run before the newest pass.
func TestNormsThatMayEndTheRunBeforeAPass(t *testing.T) {
	e := newEnding(Traits{Delay: 2, Stall: &Repeats{}}, Goal{Tolerance: 0.5}, 100)
	for sweep := range 5 {
		e.judge(sweep, 1, "")
	}
	for sweeps, want := range map[int]bool{5: false, 6: false, 7: false, 8: true, 9: true, 30: true} {
		if got := e.mayEndBefore(sweeps); got != want {
			t.Errorf("norms of sweeps 0 to 4 known: one may end the run before sweep %d: %v, want %v", sweeps, got,
				want)
		}
	}
	e.judge(5, 0.5, e.rule.Add(0.5))
	if e.mayEndBefore(30) {
		t.Error("the end is known, but a norm may end the run before it")
	}
}

// A norm that is a sum of decaying modes never falls below the forecast.
func TestForecastIsALowerBoundForAnySpectrum(t *testing.T) {
	norm := func(k int) float64 {
		s := 0.0
		for i, lambda := range []float64{0.01, 0.3, -0.7, 0.9, 0.9999} {
			s += math.Pow(10, float64(4-2*i)) * math.Pow(lambda, 2*float64(k))
		}
		return math.Sqrt(s)
	}
	for k := 1; k < 200; k++ {
		f := forecast{gap: 1}
		f.add(k-1, norm(k-1))
		f.add(k, norm(k))
		for m := range 64 {
			if tolerance := norm(k + m); f.excludes(k+m, tolerance) {
				t.Fatalf("after sweep %d the forecast excludes the norm %v that sweep %d has", k, tolerance, k+m)
			}
		}
	}
}

func TestForecastExcludesOnlyWithTwoNorms(t *testing.T) {
	f := forecast{gap: 1}
	if f.excludes(1, 1e-9) {
		t.Error("without a norm: a stop is excluded")
	}
	f.add(0, 1)
	if f.excludes(1, 1e-9) {
		t.Error("after one norm: a stop is excluded")
	}
	f.add(1, 0.9)
	if !f.excludes(8, 1e-9) || f.excludes(8, 0.1) || f.excludes(400, 1e-9) {
		t.Error("norms 1, 0.9: want sweep 8 above 1e-9, but not surely above 0.1, nor sweep 400 above 1e-9")
	}
	f.add(2, 0)
	if f.excludes(3, 0) {
		t.Error("the norm is 0, but a stop is excluded")
	}
}
