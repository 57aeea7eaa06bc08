package multigrid

import (
	"math"
	"testing"
)

// Plain cycles are left once one after the first has divided the norm by less than 16.
func TestCGRate(t *testing.T) {
	for _, c := range []struct {
		norms []float64
		want  int // norms that were added before; 0 for never
	}{
		{[]float64{1, 8, 0.5, 0.03125, 0.0009765625}, 0},
		{[]float64{1, 0.5, 0.0313}, 3},
		{[]float64{1, 0.01, 1e-4, 1e-5, 1e-7}, 4},
		{[]float64{0, 0, 0}, 0},
	} {
		var p pace
		got := 0
		for i, norm := range c.norms {
			if p.add(norm); p.aboveCGRate && got == 0 {
				got = i + 1
			}
		}
		if got != c.want {
			t.Errorf("%v: above the rate after %d norms, want %d", c.norms, got, c.want)
		}
	}
}

// A run is slow from the first norm on, the sixth at the earliest, that is above the largest one divided by the power
// of switchRate.
func TestPace(t *testing.T) {
	falling := func(rate float64, n int) (norms []float64) {
		for k := range n {
			norms = append(norms, math.Pow(rate, -float64(k)))
		}
		return norms
	}
	for _, c := range []struct {
		name  string
		norms []float64
		want  int // norms that were added when it was slow; 0 for never
	}{
		{"faster", falling(switchRate+0.01, 40), 0},
		{"slower", falling(switchRate-0.01, 40), 6},
		{"as fast, in exact powers", []float64{97.65625, 39.0625, 15.625, 6.25, 2.5, 1}, 0},
		{"slow at first only", []float64{1, 1, 1, 1, 1, 1e-4, 1e-5, 1e-6}, 0},
		{"grows at first", []float64{1, 100, 10, 1, 0.4, 0.4, 0.1}, 0},
		{"the largest one counts", []float64{1, 100, 100, 10, 1, 1.03}, 6},
		{"slower later", append(falling(10, 6), 1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5), 14},
		{"a norm of 0", []float64{0, 0, 0, 0, 0, 0, 0}, 0},
	} {
		var p pace
		got := 0
		for i, norm := range c.norms {
			if p.add(norm); p.slow() && got == 0 {
				got = i + 1
			}
		}
		if got != c.want {
			t.Errorf("%s: slow after %d norms, want %d", c.name, got, c.want)
		}
	}
}
