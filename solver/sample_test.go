package solver_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"jacobi/solver"
)

// sampler is the Sampler of one rank. It keeps the fields on a shelf.
type sampler struct {
	saver
	calls []int // sweeps of all samples, in order
}

func (s *sampler) Sample(ctx context.Context, at solver.Sample) error {
	s.calls = append(s.calls, at.Iterations)
	return s.Save(ctx, at.Iterations)
}

// sampledRun runs ranks with two Samplers each: one at an interval of sweeps, and one for the samples that asks asks
// for. It returns the Samplers of the ranks and the fields that they have seen.
func sampledRun(t *testing.T, f formula, ranks, depth, every int, limits solver.Limits, o options,
	asks func(rank int, s *sampler) bool) (out outcome, regular, asked []*sampler, h, onRequest *shelf) {
	t.Helper()
	h, onRequest = &shelf{states: map[int]map[int][]byte{}}, &shelf{states: map[int]map[int][]byte{}}
	out, errs := runRanks(t, f, ranks, depth, limits, o, func(rank int, o *options, p *plain) {
		r := &sampler{saver: saver{shelf: h, backend: p}}
		a := &sampler{saver: saver{shelf: onRequest, backend: p}}
		regular, asked = append(regular, r), append(asked, a)
		o.Samples = solver.Samples{{Sampler: r, Every: every},
			{Sampler: a, Wanted: func() bool { return asks != nil && asks(rank, a) }}}
		if o.Start.Iterations > 0 {
			if err := p.Load(t.Context(), rows{f, wantedAfter(t, f, o.Start.Iterations)}); err != nil {
				t.Fatal(err)
			}
		}
	})
	noErrors(t, errs)
	return out, regular, asked, h, onRequest
}

// A run is sampled after exactly the wanted sweeps, with the field of then, for any ranks, depth, pass
// length and lag, and never beyond its end. Samples change nothing.
func TestRegularSamplesAreExact(t *testing.T) {
	for _, periodic := range []bool{false, true} {
		f := formula{mesh: solver.Mesh{NX: 21, NY: 67, DType: solver.Float64, Walls: solver.WrapRows(periodic)},
			value: bump}
		all, _ := wanted(t, f, 0, 60)
		after := map[int][]byte{} // fields
		for at := 0; at <= len(all); at += 7 {
			after[at] = wantedAfter(t, f, at)
		}
		for _, k := range []int{5, 12, 13, 14, 47, 58} {
			norms, field := wanted(t, f, all[k], 60)
			for _, c := range []struct{ ranks, depth, pass, lag, ahead int }{{1, 8, 8, 0, 1}, {4, 8, 8, 1, 5},
				{3, 7, 2, 1, 9}, {2, 1, 1, 0, 32}} {
				for _, start := range []int{0, 7, 14} {
					if start > k {
						continue
					}
					o := options{Goal: solver.Goal{Tolerance: all[k]}, MaxIterations: 60, Ahead: c.ahead,
						Start: solver.Start{Iterations: start, Norms: norms[:start]}}
					out, regular, asked, h, _ := sampledRun(t, f, c.ranks, c.depth, 7,
						solver.Limits{MaxSweeps: c.pass, Lag: c.lag}, o, nil)
					if !slices.Equal(out.norms, norms[start:]) || !bytes.Equal(out.field, field) {
						t.Errorf("k %d, %+v, from %d: samples changed the answer", k, c, start)
					}
					var want []int
					for at := start; at <= len(norms); at += 7 {
						want = append(want, at)
					}
					for rank, s := range regular {
						if !slices.Equal(s.calls, want) || len(asked[rank].calls) > 0 {
							t.Errorf("k %d, %+v, from %d: rank %d has samples of sweeps %v, %v on request; want %v", k,
								c, start, rank, s.calls, asked[rank].calls, want)
						}
					}
					for _, at := range want {
						if !bytes.Equal(h.field(at), after[at]) {
							t.Errorf("k %d, %+v: the sample after %d sweeps is not the field of then", k, c, at)
						}
					}
				}
			}
		}
	}
}

// A rank asks until it gets its sample. All ranks then take one sample after the same sweep, and no more.
func TestSamplesOnRequest(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, value: bump}
	for _, lag := range []int{0, 1} {
		for _, ahead := range []int{1, 6} {
			asks := func(rank int, s *sampler) bool {
				return rank == 1 && (len(s.calls) == 0 && s.backend.swept >= 20 ||
					len(s.calls) == 1 && s.backend.swept >= 80)
			}
			_, regular, asked, _, h := sampledRun(t, f, 3, 4, 1000, solver.Limits{MaxSweeps: 4, Lag: lag},
				options{MaxIterations: 160, Ahead: ahead}, asks)
			late := 4 * (ahead + lag) // sweeps from the sending of a flag until it settles
			got := asked[0].calls
			if len(got) != 2 || got[0] < 20 || got[0] > 20+late || got[1] < 80 || got[1] > 80+late {
				t.Errorf("lag %d, ahead %d: samples after sweeps %v, want them up to %d after 20 and 80", lag, ahead,
					got, late)
			}
			for rank, s := range asked {
				if !slices.Equal(s.calls, got) || !slices.Equal(regular[rank].calls, []int{0}) {
					t.Errorf("rank %d has samples of sweeps %v, rank 0 %v; regular ones %v", rank, s.calls, got,
						regular[rank].calls)
				}
			}
			for _, at := range got {
				if !bytes.Equal(h.field(at), wantedAfter(t, f, at)) {
					t.Errorf("the sample after %d sweeps is not the field of then", at)
				}
			}
		}
	}
}

// An error of a Sampler ends the run.
func TestFailingSamplerEndsTheRun(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, value: bump}
	_, errs := runRanks(t, f, 1, 1, solver.Limits{MaxSweeps: 1}, options{MaxIterations: 60},
		func(_ int, o *options, _ *plain) {
			o.Samples = solver.Samples{{Sampler: lost{}, Every: 7}}
		})
	const want = "after 7 sweeps: sample the field: the device is gone"
	if err := errors.Join(errs...); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// lost is a Sampler that fails after the initial field.
type lost struct{}

func (lost) Sample(_ context.Context, at solver.Sample) error {
	if at.Iterations == 0 {
		return nil
	}
	return errors.New("the device is gone")
}
