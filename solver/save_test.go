package solver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
)

// shelf keeps the saved states of all ranks, by number of sweeps and first row.
type shelf struct {
	mu     sync.Mutex
	states map[int]map[int][]byte
}

// saver is the Saver of one rank. Busy returns true on its first patience calls, and again after each save.
type saver struct {
	shelf    *shelf
	backend  *plain
	wanted   func() bool // may be nil
	patience int
	asked    int
}

func (s *saver) Wanted() bool { return s.wanted != nil && s.wanted() }

func (s *saver) Busy() bool {
	s.asked++
	return s.asked <= s.patience
}

func (s *saver) Save(ctx context.Context, sweeps int) error {
	s.asked = 0
	stripe := s.backend.layout.Stripe
	rows := make([]byte, stripe.Rows()*s.backend.layout.Mesh.RowBytes())
	if err := s.backend.CopyRows(ctx, stripe, rows); err != nil {
		return err
	}
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	if s.shelf.states[sweeps] == nil {
		s.shelf.states[sweeps] = map[int][]byte{}
	}
	s.shelf.states[sweeps][stripe.Lo] = rows
	return nil
}

// field returns the saved interior after the given number of sweeps.
func (h *shelf) field(sweeps int) []byte {
	var all []byte
	for _, lo := range slices.Sorted(maps.Keys(h.states[sweeps])) {
		all = append(all, h.states[sweeps][lo]...)
	}
	return all
}

// rows is a field as a RowSource: a saved interior, and the boundary of the formula.
type rows struct {
	formula
	interior []byte
}

func (r rows) Row(iy int, dst []byte) error {
	if iy < 1 || iy > r.mesh.NY-2 {
		return r.formula.Row(iy, dst)
	}
	copy(dst, r.interior[(iy-1)*r.mesh.RowBytes():])
	return nil
}

// savingRun runs ranks with a Saver each, which adjust may change.
func savingRun(t *testing.T, f formula, ranks, depth int, limits solver.Limits, o options,
	adjust func(rank int, s *saver)) (outcome, *shelf) {
	t.Helper()
	h := &shelf{states: map[int]map[int][]byte{}}
	out, errs := runRanks(t, f, ranks, depth, limits, o, func(rank int, o *options, p *plain) {
		s := &saver{shelf: h, backend: p}
		if adjust != nil {
			adjust(rank, s)
		}
		o.Saver = s
	})
	noErrors(t, errs)
	return out, h
}

// A run that continues from any saved state comes to the same end, for any ranks, depth, pass length and lag, and with
// norms of some sweeps.
func TestRunGoesOnFromASavedState(t *testing.T) {
	for i, c := range []struct {
		every, k int // norms, and the sweep whose norm is the tolerance
		periodic bool
	}{{1, 9, false}, {1, 30, true}, {1, 44, false}, {1, 58, true}, {3, 44, false}, {8, 44, true}} {
		f := formula{mesh: solver.Mesh{NX: 21, NY: 67, DType: solver.Float64, Walls: solver.WrapRows(c.periodic)},
			value: bump}
		all, _ := wanted(t, f, 0, 60)
		fields := wantedFields(t, f, 60)
		o := options{Goal: solver.Goal{Tolerance: all[c.k]}, MaxIterations: 60, SaveEvery: 1,
			Norms: solver.EveryNth(c.every)}
		norms, field := wantedEvery(t, f, c.every, all[c.k], 60)
		saved, h := savingRun(t, f, 3, 2, solver.Limits{MaxSweeps: 1}, o, nil)
		if !slices.Equal(saved.norms, norms) || !bytes.Equal(saved.field, field) {
			t.Fatalf("%+v: saving changed the answer", c)
		}
		if len(h.states) < c.k/4 {
			t.Errorf("%+v: only %d states were saved", c, len(h.states))
		}
		for at := range h.states {
			if !bytes.Equal(h.field(at), fields[at]) {
				t.Fatalf("%+v: the state saved after %d sweeps is not the field of then", c, at)
			}
			if at > saved.result.Iterations || at%3 != i%3 {
				continue // the run ended before this state, or other cases go on from such states
			}
			done := o.Norms.In(at)
			for k, r := range everyCases {
				last := []int{done, min(done, solver.StopNorms)}[k%2]
				o := o
				o.Start = solver.Start{Iterations: at, Norms: norms[done-last : done]}
				out, errs := runRanks(t, f, r.ranks, r.depth, solver.Limits{MaxSweeps: r.pass, Lag: r.lag}, o,
					func(_ int, _ *options, p *plain) {
						if err := p.Load(t.Context(), rows{f, h.field(at)}); err != nil {
							t.Fatal(err)
						}
					})
				noErrors(t, errs)
				if out.result.Iterations != saved.result.Iterations || out.result.Norm != saved.result.Norm ||
					out.result.Reason != saved.result.Reason || !slices.Equal(out.norms, norms[done:]) ||
					!bytes.Equal(out.field, field) {
					t.Errorf("%+v, %+v, on from %d: %+v, %d norms; want %+v", c, r, at, out.result, len(out.norms),
						saved.result)
				}
			}
		}
	}
}

// wantedFields returns the fields after 0 to `most` sweeps.
func wantedFields(t *testing.T, f formula, most int) [][]byte {
	t.Helper()
	j, err := reference.New(f.mesh, solver.Operator{}, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	fields := [][]byte{j.Rows(f.mesh.Interior())}
	for range most {
		j.Sweep()
		fields = append(fields, j.Rows(f.mesh.Interior()))
	}
	return fields
}

func wantedAfter(t *testing.T, f formula, sweeps int) []byte {
	t.Helper()
	_, field := wanted(t, f, 0, sweeps)
	return field
}

// A continued run whose forecast turns out wrong restarts from the initial field.
func TestRunThatGoesOnCanRewind(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 3, NY: 42, DType: solver.Float64, Walls: solver.WrapRows(true)}, value: bump}
	all, _ := wanted(t, f, 0, 100)
	_, field := wanted(t, f, all[17], 100)
	// Exaggerated norms make the forecast wrong.
	var large solver.Sum
	for range 2 { // ranks
		exaggerate(&large)
	}
	start := solver.Start{Iterations: 8, Norms: slices.Repeat([]float64{large.Norm(0)}, 8)}
	o := options{Goal: solver.Goal{Tolerance: all[17]}, MaxIterations: 100, Start: start}
	out, errs := runRanks(t, f, 2, 16, solver.Limits{MaxSweeps: 4}, o, func(_ int, _ *options, p *plain) {
		if err := p.Load(t.Context(), rows{f, wantedAfter(t, f, 8)}); err != nil {
			t.Fatal(err)
		}
		p.exaggerateBefore = 16
	})
	noErrors(t, errs)
	if out.result.Iterations != 19 || !bytes.Equal(out.field, field) {
		t.Errorf("%+v, want 19 sweeps and their field", out.result)
	}
	for r, p := range out.backends {
		if p.loaded != 3 { // the initial field, the state, the initial field again
			t.Errorf("rank %d loaded %d times, want 3: the case did not need a restart", r, p.loaded)
		}
	}
}

// A state is saved every SaveEvery sweeps, at the end of the pass, unless the run ends there. A save that falls due
// while a rank is busy waits until no rank is.
func TestStatesAreSavedInTime(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, value: bump}
	limits := solver.Limits{MaxSweeps: 4}
	saved := func(o options, adjust func(int, *saver)) []int {
		t.Helper()
		o.MaxIterations = 60
		_, h := savingRun(t, f, 3, 4, limits, o, adjust)
		return slices.Sorted(maps.Keys(h.states))
	}
	check := func(what string, got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: saved after sweeps %v, want %v", what, got, want)
		}
	}
	check("never", saved(options{}, nil))
	check("every 16", saved(options{SaveEvery: 16}, nil), 16, 32, 48)
	check("every 10", saved(options{SaveEvery: 10}, nil), 12, 20, 32, 40, 52)
	check("every 1000", saved(options{SaveEvery: 1000}, nil))
	// Rank 2 is busy at the end of the next three passes; its flags of the fourth settle one pass later.
	check("busy", saved(options{SaveEvery: 4}, func(rank int, s *saver) {
		if rank == 2 {
			s.patience = 3
		}
	}), 4, 24, 44)
	check("on request", saved(options{}, func(rank int, s *saver) {
		s.wanted = func() bool { return rank == 1 && s.backend.swept == 24 }
	}), 28)
}

func TestStartOutOfRangeIsRefused(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, value: bump}
	for _, c := range []struct {
		start solver.Start
		want  string
	}{
		{solver.Start{Iterations: 5, Norms: []float64{1}}, "start after sweep 5 with 1 norms"},
		{solver.Start{Iterations: 1}, "start after sweep 1 with 0 norms"},
		{solver.Start{Iterations: 150, Norms: make([]float64, 100)}, "start after sweep 150 with 100 norms"},
		{solver.Start{Iterations: 61, Norms: slices.Repeat([]float64{1}, 61)},
			"start after 61 sweeps of a run that ends after 60"},
		{solver.Start{Iterations: 9, Norms: []float64{1, 1, 1, 1, 1, 1, 0.01, 0.01, 0.01}},
			"start after 9 sweeps of a run that ends after 8"},
	} {
		_, errs := runRanks(t, f, 1, 1, solver.Limits{MaxSweeps: 1},
			options{Start: c.start, MaxIterations: 60, Goal: solver.Goal{Tolerance: 0.1}}, nil)
		if err := errors.Join(errs...); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.start, err, c.want)
		}
	}
}

// An error of Save ends the run.
func TestFailingSaverEndsTheRun(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, value: bump}
	_, errs := runRanks(t, f, 1, 1, solver.Limits{MaxSweeps: 1}, options{MaxIterations: 60, SaveEvery: 7},
		func(_ int, o *options, _ *plain) {
			o.Saver = failing{}
		})
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(),
		"sweep 6: save the state: the device is gone") {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Wanted() bool                    { return false }
func (failing) Busy() bool                      { return false }
func (failing) Save(context.Context, int) error { return fmt.Errorf("the device is gone") }
