package solver_test

import (
	"testing"

	"jacobi/solver"
)

// A norm meets the larger of the two tolerances, unless it may have lost more than a millionth of that.
func TestGoal(t *testing.T) {
	for _, c := range []struct {
		goal solver.Goal
		norm float64
		want bool
	}{
		{solver.Goal{}, 0, false},
		{solver.Goal{Tolerance: 1e-8}, 1e-8, true},
		{solver.Goal{Tolerance: 1e-8}, 1.1e-8, false},
		{solver.Goal{Relative: 1e-8}, 0, false},
		{solver.Goal{Relative: 1e-8, Base: 1e-30}, 1e-38, true},
		{solver.Goal{Relative: 1e-8, Base: 1e-30}, 1e-37, false},
		{solver.Goal{Tolerance: 1e-3, Relative: 1e-8, Base: 1}, 1e-3, true},
		{solver.Goal{Tolerance: 1e-9, Relative: 1e-8, Base: 1}, 1e-8, true},
		{solver.Goal{Tolerance: 1e-8, Blind: 1e-16}, 1e-8, true},
		{solver.Goal{Tolerance: 1e-8, Blind: 1e-12}, 1e-8, false},
		{solver.Goal{Tolerance: 1e-8, Blind: 1e-12}, 0.9e-8, true},
		{solver.Goal{Tolerance: 1e-8, Blind: 1e10}, 0, false},
	} {
		if got := c.goal.Met(c.norm); got != c.want {
			t.Errorf("%+v, norm %g: %v, want %v", c.goal, c.norm, got, c.want)
		}
	}
}

// Where no base is given the first norm is the base.
func TestMetBy(t *testing.T) {
	norms := []float64{100, 10, 1, 0.1}
	for _, c := range []struct {
		goal  solver.Goal
		index int
		ok    bool
	}{
		{solver.Goal{Relative: 0.011}, 2, true},
		{solver.Goal{Relative: 0.011, Base: 10}, 3, true},
		{solver.Goal{Relative: 1e-9}, 0, false},
	} {
		if index, ok := c.goal.MetBy(norms); index != c.index || ok != c.ok {
			t.Errorf("%+v: %d, %v; want %d, %v", c.goal, index, ok, c.index, c.ok)
		}
	}
}

// The sums of groups are cut to multiples of 2^(2E-134). A magnitude of 1e-35 leaves a norm far below 1e-8 of it, and
// one of 1e30 hides norms of data of 1.
func TestBlind(t *testing.T) {
	m := solver.Mesh{NX: 16384, NY: 16384, DType: solver.Float64}
	for _, c := range []struct{ largest, low, high float64 }{
		{1, 1e-17, 3e-17}, {1e-35, 1e-52, 4e-52}, {1e30, 1e13, 4e13},
	} {
		if got := solver.Blind(m, solver.MagnitudeOf(c.largest)); got < c.low || got > c.high {
			t.Errorf("%g: %g, want %g to %g", c.largest, got, c.low, c.high)
		}
	}
}
