package solver_test

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"jacobi/solver"
)

func TestCadence(t *testing.T) {
	for _, c := range []struct {
		cadence solver.Cadence
		sweeps  []int // with a norm, below 12
	}{
		{solver.Cadence{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{solver.EveryNth(1), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{solver.EveryNth(4), []int{3, 7, 11}},
		{solver.EveryNth(5), []int{4, 9}},
		{solver.EveryNth(13), nil},
		{solver.Cadence{Stride: 5}, []int{0, 5, 10}},
	} {
		for i, sweep := range c.sweeps {
			if got := c.cadence.Sweep(i); got != sweep {
				t.Errorf("%+v: norm %d is that of sweep %d, want %d", c.cadence, i, got, sweep)
			}
		}
		for lo := range 12 {
			if got, want := c.cadence.Has(lo), slices.Contains(c.sweeps, lo); got != want {
				t.Errorf("%+v: sweep %d has a norm: %v, want %v", c.cadence, lo, got, want)
			}
			for n := 1; lo+n <= 12; n++ {
				want := slices.DeleteFunc(slices.Clone(c.sweeps), func(s int) bool { return s < lo || s >= lo+n })
				first, count := c.cadence.Of(solver.Pass{First: lo, Sweeps: n})
				if count != len(want) || count > 0 && first != want[0] {
					t.Errorf("%+v: sweeps %d to %d have %d norms from %d on, want those of %v", c.cadence, lo, lo+n-1,
						count, first, want)
				}
			}
		}
	}
}

func TestNormsOf(t *testing.T) {
	for _, c := range []struct {
		every int
		pass  solver.Pass
		want  solver.NormsOf
	}{
		{1, solver.Pass{First: 3, Sweeps: 1}, solver.LastNorm},
		{1, solver.Pass{First: 3, Sweeps: 2}, solver.SomeNorms},
		{16, solver.Pass{First: 0, Sweeps: 16}, solver.LastNorm},
		{16, solver.Pass{First: 0, Sweeps: 15}, solver.NoNorms},
		{16, solver.Pass{First: 8, Sweeps: 16}, solver.SomeNorms},
		{8, solver.Pass{First: 0, Sweeps: 16}, solver.SomeNorms},
		{32, solver.Pass{First: 0, Sweeps: 16}, solver.NoNorms},
		{32, solver.Pass{First: 16, Sweeps: 16}, solver.LastNorm},
	} {
		if got := (solver.Layout{Norms: solver.EveryNth(c.every)}).NormsOf(c.pass); got != c.want {
			t.Errorf("every %d, %+v: %d, want %d", c.every, c.pass, got, c.want)
		}
	}
}

var everyCases = []struct{ ranks, depth, pass, lag int }{
	{1, 1, 1, 0}, {1, 8, 8, 0}, {3, 1, 1, 1}, {3, 2, 2, 0}, {3, 5, 5, 1}, {4, 8, 8, 1}, {3, 8, 3, 0}, {3, 8, 4, 1},
	{3, 7, 2, 1}, {5, 6, 6, 0},
}

// With norms after every N sweeps alone, a run ends after sweep k+1, where k is the first sweep with a norm that meets
// the tolerance; its norms are those of a run with all norms, and its field is that after the same number of sweeps.
func TestRunWithNormsOfSomeSweeps(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 21, NY: 67, DType: solver.Float64}, value: bump}
	all, _ := wanted(t, f, 0, 60)
	for _, every := range []int{2, 3, 4, 7, 8, 16, 24} {
		for _, k := range []int{0, 1, 7, 9, 15, 30, 46, 55, 59} {
			tolerance := all[k]
			norms, field := wantedEvery(t, f, every, tolerance, 60)
			sweeps, reason := 60, solver.MaxIterations
			if norms[len(norms)-1] <= tolerance {
				decisive := len(norms)*every - 1 // with N > 1 the sweep after it has none
				sweeps, reason = min(60, decisive+2), solver.Converged
			}
			for i, norm := range norms {
				if norm != all[(i+1)*every-1] {
					t.Fatalf("every %d: norm %d is not that of sweep %d", every, i, (i+1)*every-1)
				}
			}
			for _, c := range everyCases {
				swept := 0
				out, errs := runRanks(t, f, c.ranks, c.depth, solver.Limits{MaxSweeps: c.pass, Lag: c.lag},
					options{Goal: solver.Goal{Tolerance: tolerance}, MaxIterations: 60,
						Norms: solver.EveryNth(every)},
					func(rank int, o *options, _ *plain) {
						if rank == 0 {
							o.OnPass = func(sweeps int) { swept = sweeps }
						}
					})
				noErrors(t, errs)
				if out.result.Iterations != sweeps || out.result.Reason != reason || swept != sweeps ||
					out.result.Norm != norms[len(norms)-1] {
					t.Errorf("every %d, k %d, %+v: %+v after %d sweeps; want %d sweeps, %s, norm %v", every, k, c,
						out.result, swept, sweeps, reason, norms[len(norms)-1])
				}
				if !slices.Equal(out.norms, norms) || !bytes.Equal(out.field, field) {
					t.Errorf("every %d, k %d, %+v: %d norms, want %d; or others, or another field", every, k, c,
						len(out.norms), len(norms))
				}
			}
		}
	}
}

// A run without a norm yet has none to show, and a request to stop does not wait for one.
func TestRunStopsBeforeItsFirstNorm(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 21, NY: 67, DType: solver.Float64}, value: bump}
	out, errs := runRanks(t, f, 3, 4, solver.Limits{MaxSweeps: 4, Lag: 1},
		options{MaxIterations: 1 << 30, Norms: solver.EveryNth(1000)},
		func(rank int, o *options, p *plain) {
			if rank == 1 {
				o.Stop = func() bool { return p.swept >= 20 }
			}
		})
	noErrors(t, errs)
	if out.result.Reason != solver.Interrupted || out.result.Iterations < 20 || out.result.Iterations > 32 ||
		!math.IsNaN(out.result.Norm) || len(out.norms) != 0 {
		t.Errorf("%+v, %d norms; want interrupted within three passes after sweep 20 without norms", out.result,
			len(out.norms))
	}
	if _, field := wanted(t, f, 0, out.result.Iterations); !bytes.Equal(out.field, field) {
		t.Errorf("not the field after %d sweeps", out.result.Iterations)
	}
}

// Where norms are due at ends of passes alone, a run that goes on from a state between them does one short pass and
// then whole ones. So all norms but those of the short pass are due at ends of passes again.
func TestPassesGetInStepWithNorms(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 21, NY: 67, DType: solver.Float64}, value: bump}
	state := wantedAfter(t, f, 5)
	var lengths []int
	_, errs := runRanks(t, f, 3, 8, solver.Limits{MaxSweeps: 8},
		options{MaxIterations: 45, Norms: solver.EveryNth(16), Start: solver.Start{Iterations: 5}},
		func(rank int, o *options, p *plain) {
			if err := p.Load(t.Context(), rows{f, state}); err != nil {
				t.Fatal(err)
			}
			if rank == 0 {
				o.OnStep = func(s solver.Step, _ time.Time, _ time.Duration) {
					if s.Kind == solver.StepInterior {
						lengths = append(lengths, s.Sweeps)
					}
				}
			}
		})
	noErrors(t, errs)
	if want := []int{3, 8, 8, 8, 8, 5}; !slices.Equal(lengths, want) {
		t.Errorf("passes of %v sweeps, want %v", lengths, want)
	}
}
