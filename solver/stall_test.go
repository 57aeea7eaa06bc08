package solver_test

import (
	"bytes"
	"slices"
	"testing"

	"jacobi/solver"
)

// A field that only rounding changes ends the run at the same sweep for every depth, pass length, lag and restart, both
// where it stays the same and where it alternates between two states. No rank computes anything twice except a part of
// the last pass.
func TestRunEndsWhenItStalls(t *testing.T) {
	for _, p := range []struct {
		mesh   solver.Mesh
		sweeps int // until the run stalls
		zero   bool
	}{
		{solver.Mesh{NX: 9, NY: 42, DType: solver.Float64}, 836, true},
		{solver.Mesh{NX: 7, NY: 42, DType: solver.Float64}, 582, false},
		{solver.Mesh{NX: 7, NY: 42, DType: solver.Float64, Walls: solver.WrapRows(true)}, 505, true},
		{solver.Mesh{NX: 5, NY: 42, DType: solver.Float64, Walls: solver.WrapRows(true)}, 318, false},
	} {
		f := formula{mesh: p.mesh, value: bump}
		for _, tolerance := range []float64{0, 1e-20} {
			norms, field := wanted(t, f, tolerance, 5000)
			decisive := solver.Decisive{Sweep: len(norms) - 2, Norm: norms[len(norms)-2]}
			if len(norms) != p.sweeps || (decisive.Norm == 0) != p.zero {
				t.Fatalf("%+v: the oracle did %d sweeps, to a norm of %v", p, len(norms), decisive.Norm)
			}
			reason := solver.Stalled
			if decisive.Norm <= tolerance && tolerance > 0 {
				reason = solver.Converged
			}
			for _, c := range []struct{ ranks, depth, pass, lag, ahead, start int }{
				{1, 1, 1, 0, 1, 0}, {2, 8, 8, 0, 1, 0}, {2, 5, 5, 1, 1, 0}, {2, 8, 3, 1, 1, 0}, {1, 1, 1, 0, 32, 0},
				{2, 8, 8, 0, 32, 0}, {2, 5, 5, 1, 32, 0}, {2, 8, 3, 1, 9, 0}, {2, 8, 8, 1, 1, 50},
				{2, 8, 8, 1, 32, 50}, {1, 7, 7, 0, 1, p.sweeps - 103}, {1, 7, 7, 1, 32, p.sweeps - 103},
				{2, 8, 8, 0, 32, p.sweeps - 60}, {2, 5, 2, 1, 32, p.sweeps - 3},
			} {
				o := options{Goal: solver.Goal{Tolerance: tolerance}, MaxIterations: 5000, Ahead: c.ahead}
				last := norms[c.start-min(c.start, solver.StopNorms) : c.start]
				o.Start = solver.Start{Iterations: c.start, Norms: last}
				limits := solver.Limits{MaxSweeps: c.pass, Lag: c.lag}
				out, errs := runRanks(t, f, c.ranks, c.depth, limits, o, func(_ int, _ *options, b *plain) {
					if c.start == 0 {
						return
					}
					if err := b.Load(t.Context(), rows{f, wantedAfter(t, f, c.start)}); err != nil {
						t.Fatal(err)
					}
					b.loaded = 1
				})
				noErrors(t, errs)
				r, d := out.result, out.result.Decisive
				if r.Iterations != len(norms) || r.Reason != reason || d == nil || *d != decisive {
					t.Errorf("%+v, %+v: %+v, %+v; want %s after %d, by %+v", p, c, r, d, reason, len(norms), decisive)
				}
				if !slices.Equal(out.norms, norms[c.start:]) || !bytes.Equal(out.field, field) {
					t.Errorf("%+v, %+v: other norms or another field", p, c)
				}
				for rank, b := range out.backends {
					if b.loaded != 1 || b.swept >= len(norms)-c.start+2*c.pass {
						t.Errorf("%+v, %+v: rank %d loaded %d times and did %d sweeps for %d",
							p, c, rank, b.loaded, b.swept, len(norms)-c.start)
					}
				}
			}
		}
	}
}

// A norm of 0 meets any tolerance. Without one it is a stall, but for the first norm: the field is the solution.
func TestStopRule(t *testing.T) {
	repeat := func(n int, norms ...float64) (all []float64) {
		for range n {
			all = append(all, norms...)
		}
		return all
	}
	for _, c := range []struct {
		name      string
		tolerance float64
		norms     []float64
		sweep     int // that ends the run; -1 for none
		want      solver.StopReason
	}{
		{"falls", 0.3, []float64{1, 0.5, 0.3, 0}, 2, solver.Converged},
		{"falls to 0", 0.3, []float64{1, 0.5, 0, 0}, 2, solver.Converged},
		{"falls to 0, no tolerance", 0, []float64{1, 0.5, 0, 0}, 2, solver.Stalled},
		{"0 from the start", 0, []float64{0}, 0, solver.Converged},
		{"one value", 0, repeat(102, 0.5), 101, solver.Stalled},
		{"one value, not yet", 0, repeat(101, 0.5), -1, ""},
		{"two values", 0, append([]float64{9, 9, 9}, repeat(60, 0.5, 0.6)...), 104, solver.Stalled},
		{"three values", 0, repeat(99, 0.5, 0.6, 0.7), -1, ""},
		{"broken", 0, append(append(repeat(101, 0.5), 0.4), repeat(101, 0.5)...), -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule, at := solver.StopRule{Goal: solver.Goal{Tolerance: c.tolerance}, Stall: &solver.Repeats{}}, -1
			var reason solver.StopReason
			for i, norm := range c.norms {
				if reason = rule.Add(norm); reason != "" {
					at = i
					break
				}
			}
			if at != c.sweep || reason != c.want {
				t.Errorf("%q by sweep %d, want %q by %d", reason, at, c.want, c.sweep)
			}
		})
	}
}

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
