package solver_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"jacobi/solver"
	"jacobi/solver/jacobi"
)

// tallMesh is a mesh that five ranks with halos of 16 rows can share.
func tallMesh(periodic bool) formula {
	return formula{solver.Mesh{NX: 13, NY: 114, DType: solver.Float64, Walls: solver.WrapRows(periodic)}, bump}
}

var tall = tallMesh(false)

// depths calls check for depths 1 to 16 with other numbers of ranks, passes ahead, lags and sweeps a pass. With -short
// it does so for a quarter of them: the race detector is slow.
func depths(check func(ranks int, limits solver.Limits, o options)) {
	for depth := 1; depth <= 16; depth++ {
		for i, ahead := range []int{1, 2, 3, 8, 32} {
			if testing.Short() && (depth+i)%4 != 0 {
				continue
			}
			sweeps := depth
			if i%2 == 1 {
				sweeps = (depth + 1) / 2
			}
			check(1+(depth+i)%5, solver.Limits{MaxSweeps: sweeps, Lag: (depth + i/2) % 2},
				options{Depth: depth, Ahead: ahead, delay: ahead})
		}
	}
}

// However far norms lag behind the sweeps, a run ends after the same sweep, with the same norms and field. A norm that
// the very last sweep meets counts as converged.
func TestRunEndsAlikeHoweverLateTheNorms(t *testing.T) {
	for _, f := range []formula{tall, tallMesh(true)} {
		all, _ := wanted(t, f, 0, 90)
		for _, end := range []struct {
			k             int // the sweep whose norm is the tolerance; -1 for none
			maxIterations int
		}{{0, 90}, {7, 90}, {30, 90}, {63, 90}, {88, 90}, {89, 90}, {-1, 77}, {-1, 1}} {
			tolerance, reason := 0.0, solver.MaxIterations
			if end.k >= 0 {
				tolerance, reason = all[end.k], solver.Converged
			}
			norms, field := wanted(t, f, tolerance, end.maxIterations)
			depths(func(ranks int, limits solver.Limits, o options) {
				o.Goal.Tolerance, o.MaxIterations = tolerance, end.maxIterations
				out, errs := runRanks(t, f, ranks, o.Depth, limits, o, nil)
				noErrors(t, errs)
				if out.result.Iterations != len(norms) || out.result.Reason != reason ||
					!slices.Equal(out.norms, norms) || !bytes.Equal(out.field, field) {
					t.Errorf("%+v, %d ranks, depth %d, %+v, %d ahead: %+v, %d norms; want %d sweeps, %s", end, ranks,
						o.Depth, limits, o.Ahead, out.result, len(out.norms), len(norms), reason)
				}
				for r, p := range out.backends {
					if p.loaded != 1 || p.swept >= len(norms)+2*limits.MaxSweeps {
						t.Errorf("%+v, depth %d: rank %d loaded %d times and did %d sweeps for %d", end, o.Depth, r,
							p.loaded, p.swept, len(norms))
					}
				}
			})
		}
	}
}

// A request of one rank to stop ends the run on all ranks after the same sweep, at most Ahead+2 passes later.
func TestRequestsToStopArriveThoughNormsAreLate(t *testing.T) {
	all, _ := wanted(t, tall, 0, 1000)
	depths(func(ranks int, limits solver.Limits, o options) {
		o.MaxIterations = 1 << 30
		out, errs := runRanks(t, tall, ranks, o.Depth, limits, o, func(rank int, o *options, p *plain) {
			if rank == ranks/2 {
				o.Stop = func() bool { return p.swept >= 40 }
			}
		})
		noErrors(t, errs)
		sweeps, latest := out.result.Iterations, 40+(o.Ahead+2)*limits.MaxSweeps
		if out.result.Reason != solver.Interrupted || sweeps < 40 || sweeps > latest {
			t.Errorf("depth %d, %d ahead: %+v, want interrupted after 40 to %d sweeps", o.Depth, o.Ahead, out.result,
				latest)
		}
		if !slices.Equal(out.norms, all[:sweeps]) || !bytes.Equal(out.field, wantedAfter(t, tall, sweeps)) {
			t.Errorf("depth %d, %d ahead: not the state after %d sweeps", o.Depth, o.Ahead, sweeps)
		}
	})
}

// States are saved after the same sweeps on all ranks: regular ones when they are due, and one that a rank requests at
// most Ahead+2 passes later.
func TestStatesAreSavedThoughNormsAreLate(t *testing.T) {
	fields := wantedFields(t, tall, 200)
	depths(func(ranks int, limits solver.Limits, o options) {
		for _, every := range []int{0, 32} {
			o.MaxIterations, o.SaveEvery = 200, every
			h := &shelf{states: map[int]map[int][]byte{}}
			_, errs := runRanks(t, tall, ranks, o.Depth, limits, o, func(rank int, o *options, p *plain) {
				s := &saver{shelf: h, backend: p}
				if every == 0 && rank == ranks-1 {
					s.wanted = func() bool { return p.swept >= 40 && p.swept < 40+limits.MaxSweeps }
				}
				o.Saver = s
			})
			noErrors(t, errs)
			at := slices.Sorted(maps.Keys(h.states))
			what := fmt.Sprintf("depth %d, %+v, %d ahead, every %d: saved after sweeps %v", o.Depth, limits, o.Ahead,
				every, at)
			for _, sweeps := range at {
				if !bytes.Equal(h.field(sweeps), fields[sweeps]) {
					t.Fatalf("%s: not the field after %d", what, sweeps)
				}
			}
			if every == 0 {
				if latest := 40 + (o.Ahead+3)*limits.MaxSweeps; len(at) != 1 || at[0] < 40 || at[0] > latest {
					t.Errorf("%s; want one state after 40 to %d", what, latest)
				}
				continue
			}
			o.Ahead, o.delay = 1, 0
			_, prompt := savingRun(t, tall, ranks, o.Depth, limits, o, nil)
			if want := slices.Sorted(maps.Keys(prompt.states)); !slices.Equal(at, want) {
				t.Errorf("%s; want %v", what, want)
			}
		}
	})
}

// A damaged value ends the run with the same error on all ranks.
func TestDamageIsNamedThoughNormsAreLate(t *testing.T) {
	depths(func(ranks int, limits solver.Limits, o options) {
		o.MaxIterations = 1000
		_, errs := runRanks(t, tall, ranks, o.Depth, limits, o, func(rank int, _ *options, p *plain) {
			if rank == ranks-1 {
				p.damageAt = 43
			}
		})
		for r, err := range errs {
			const want = "sweep 43: the norm is NaN: the field has left the range of its type or was damaged"
			if err == nil || err.Error() != want {
				t.Errorf("depth %d, %d ahead, rank %d: %v, want %s", o.Depth, o.Ahead, r, err, want)
			}
		}
	})
}

// As long as the forecast rules out an end, no rank waits for norms that arrive up to Ahead passes late, or one less
// where Sums lags. Ranks wait for the first norms, whose fall is too steep for a forecast that reaches far, and for the
// last ones.
func TestNoRankWaitsForNormsFarFromTheEnd(t *testing.T) {
	for _, c := range []struct {
		ranks, delay int
		limits       solver.Limits
		o            options
		first, last  int // passes that are waited for: the first ones and the last ones
	}{
		{2, 3, solver.Limits{MaxSweeps: 4}, options{Depth: 4, Ahead: 3}, 2, 3},
		{2, 4, solver.Limits{MaxSweeps: 4}, options{Depth: 4, Ahead: 3}, 80, 0},
		{3, 7, solver.Limits{MaxSweeps: 8, Lag: 1}, options{Depth: 8, Ahead: 8}, 9, 8},
		{1, 32, solver.Limits{MaxSweeps: 1}, options{Depth: 1, Ahead: 32}, 11, 32},
		{5, 16, solver.Limits{MaxSweeps: 4}, options{Depth: 16, Ahead: 16}, 17, 16},
	} {
		c.o.MaxIterations, c.o.delay = 320, c.delay
		var want []int
		for pass, passes := 0, 320/c.limits.MaxSweeps; pass < passes; pass++ {
			if pass < c.first || pass >= passes-c.last {
				want = append(want, pass)
			}
		}
		out, errs := runRanks(t, tall, c.ranks, c.o.Depth, c.limits, c.o, nil)
		noErrors(t, errs)
		if out.result.Iterations != 320 || !slices.Equal(out.waits, want) {
			t.Errorf("%d ranks, delay %d, %+v, %d ahead: %d sweeps, waited for passes %v, want %v", c.ranks, c.delay,
				c.limits, c.o.Ahead, out.result.Iterations, out.waits, want)
		}
	}
}

// Norms may be ahead by less work than takes seconds, by passes that the reducer's memory holds, and by sweeps that a
// forecast reaches.
func TestPassesAhead(t *testing.T) {
	for _, c := range []struct{ n, ranks, sweeps, want int }{
		{512, 2, 1, 33}, {2048, 4, 16, 33}, {2048, 4, 64, 9}, {64, 1, 1024, 1}, {16384, 4, 1, 33}, {16384, 4, 16, 3},
		{16384, 2, 16, 2}, {65536, 2, 16, 1},
	} {
		mesh := solver.Mesh{NX: c.n, NY: c.n, DType: solver.Float32}
		stripes, err := solver.Partition(mesh.Interior(), c.ranks, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := jacobi.PassesAhead(mesh, stripes, c.sweeps); got != c.want {
			t.Errorf("%+v: %d passes", c, got)
		}
	}
}
