package solver_test

import (
	"math"
	"slices"
	"testing"

	"jacobi/solver"
)

func TestWeightsRepeat(t *testing.T) {
	w := solver.Weights{0, 5, 6, 0, 7}
	for sweep, want := range []float64{0, 5, 6, 0, 7, 0, 5} {
		if got := w.At(sweep); got != want {
			t.Errorf("sweep %d has weight %v, want %v", sweep, got, want)
		}
	}
	for _, c := range [][3]int{{0, 9, 1}, {1, 9, 2}, {1, 1, 1}, {2, 9, 1}, {4, 9, 1}, {6, 9, 2}} {
		if got := w.Alike(c[0], c[1]); got != c[2] {
			t.Errorf("Alike(%d, %d) is %d, want %d", c[0], c[1], got, c[2])
		}
	}
	if none := (solver.Weights)(nil); none.At(7) != 0 || none.Alike(7, 9) != 9 {
		t.Error("sweeps without weights are not all plain")
	}
}

func TestWeightsAreChecked(t *testing.T) {
	m := solver.Mesh{NX: 9, NY: 9, DType: solver.Float64}
	l := solver.Layout{Mesh: m, Stripe: m.Interior(), Depth: 1, Weights: solver.Weights{0, 2},
		Operator: solver.Operator{}.General()}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	for want, weights := range map[string]solver.Weights{
		"weights: weight 1 is NaN":  {0, math.NaN()},
		"weights: weight 0 is -1":   {-1},
		"weights: weight 2 is +Inf": {0, 1, math.Inf(1)},
	} {
		bad := l
		bad.Weights = weights
		if err := bad.Check(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for want, change := range map[string]func(*solver.Layout){
		"weights: the general operator is needed": func(l *solver.Layout) { l.Operator = solver.Operator{} },
		"weights: float64 is needed, not float32": func(l *solver.Layout) { l.Mesh.DType = solver.Float32 },
	} {
		bad := l
		change(&bad)
		if err := bad.Check(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestCycleRule(t *testing.T) {
	rule := solver.CycleRule{Tolerance: 1, Relative: 1e-3, Patience: 2, Fall: 0.5}
	for _, c := range []struct {
		norms  []float64
		index  int
		reason solver.StopReason
	}{
		{[]float64{9, 4, 1}, 2, solver.Converged},
		{[]float64{5000, 400, 5}, 2, solver.Converged},
		{[]float64{9, 0}, 1, solver.Stalled},
		{[]float64{9, 8, 7, 2}, 2, solver.Stalled},
		{[]float64{9, 8, 4, 3, 1.5}, 0, ""},
	} {
		if index, reason := rule.Ends(c.norms); index != c.index || reason != c.reason {
			t.Errorf("%v: %d, %q; want %d, %q", c.norms, index, reason, c.index, c.reason)
		}
	}
}

// Norms that grow at first, or leap, are not rounding, but do not go on for ever.
func TestCycleRuleWithNoise(t *testing.T) {
	same := func(n int, norm float64) []float64 { return slices.Repeat([]float64{norm}, n) }
	for _, c := range []struct {
		norms  []float64
		index  int
		reason solver.StopReason
	}{
		{[]float64{100, 200, 300, 350, 300, 40, 4, 1}, 7, solver.Converged},
		{[]float64{100, 9, 15, 17, 16}, 4, solver.Stalled},
		{[]float64{100, 9, 15, 19, 16}, 0, ""},
		{same(31, 100), 30, solver.Stalled},
		{append([]float64{100, 9}, same(30, 19)...), 31, solver.Stalled},
	} {
		rule := solver.CycleRule{Tolerance: 1, Patience: 3, Fall: 1, Noise: 2}
		if index, reason := rule.Ends(c.norms); index != c.index || reason != c.reason {
			t.Errorf("%v: %d, %q; want %d, %q", c.norms, index, reason, c.index, c.reason)
		}
	}
}
