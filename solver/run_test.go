package solver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/jacobi"
)

// formula is an initial field.
type formula struct {
	mesh  solver.Mesh
	value func(x, y int) float64
}

func (f formula) Row(iy int, dst []byte) error {
	for x := range f.mesh.NX {
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(f.value(x, iy)))
	}
	return nil
}

// wanted returns the norms and the field of a run by its definition: the naive oracle, sweep by sweep, until sweep k+1.
func wanted(t *testing.T, f formula, tolerance float64, maxIterations int) (norms []float64, field []byte) {
	t.Helper()
	return wantedEvery(t, f, 1, tolerance, maxIterations)
}

// wantedEvery is wanted for a run with norms after every, 2*every, ... sweeps.
func wantedEvery(t *testing.T, f formula, every int, tolerance float64, maxIterations int) (norms []float64,
	field []byte) {
	t.Helper()
	j, err := reference.New(f.mesh, solver.Operator{}, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop := maxIterations
	for k := 0; k < stop; k++ {
		norm := j.Sweep().Norm(0)
		if (k+1)%every != 0 {
			continue
		}
		norms = append(norms, norm)
		if stop == maxIterations && reference.Ends(norms, tolerance) {
			stop = min(stop, k+2)
		}
	}
	return norms, j.Rows(f.mesh.Interior())
}

// options are the parameters of a run by sweeps.
type options struct {
	Initial       solver.RowSource
	Start         solver.Start
	Depth         int
	MaxSweeps     int
	Goal          solver.Goal
	MaxIterations int
	Norms         solver.Cadence
	Ahead         int
	delay         int // passes by which totals are late
	Stop          func() bool
	Saver         solver.Saver
	SaveEvery     int
	Samples       solver.Samples
	OnNorms       func(first int, norms []float64) error
	OnPass        func(sweeps int)
	OnStep        solver.OnStep
}

// run sweeps a loaded field until the run ends.
func run(ctx context.Context, s solver.Sweeper, x solver.Exchange, r solver.Reducer, o options) (solver.Result, error) {
	sums := solver.NewReductions(r, &solver.Watch{OnStep: o.OnStep})
	it, err := jacobi.New(s, x, sums.Watch, jacobi.Options{Depth: o.Depth, MaxSweeps: o.MaxSweeps,
		Sweeps: o.Start.Iterations, Norms: o.Norms, Initial: o.Initial, Ahead: o.Ahead})
	if err != nil {
		return solver.Result{}, err
	}
	return solver.Drive(ctx, it, sums, solver.Options{Start: o.Start, Goal: o.Goal, MaxIterations: o.MaxIterations,
		Stop: o.Stop, Saver: o.Saver, SaveEvery: o.SaveEvery, Samples: o.Samples, OnNorms: o.OnNorms, OnPass: o.OnPass})
}

// outcome is the result of a run of several ranks.
type outcome struct {
	result   solver.Result
	norms    []float64 // of rank 0
	field    []byte
	backends []*plain
	waits    []int // passes for whose totals ranks have waited
}

// late is the reducer of a rank whose total of a pass arrives when the rank has posted delay further passes.
type late struct {
	*exchangetest.Reducer
	delay  int
	posted int
	waits  []int // passes whose total had not arrived when it was waited for
}

func (l *late) Post(ctx context.Context, pass uint64, c solver.Contribution) error {
	l.posted++
	return l.Reducer.Post(ctx, pass, c)
}

func (l *late) Wait(ctx context.Context, pass uint64) (solver.Contribution, error) {
	if l.posted <= int(pass)+l.delay {
		l.waits = append(l.waits, int(pass))
	}
	return l.Reducer.Wait(ctx, pass)
}

// runRanks runs ranks in this process. mutate, if not nil, may change the options and the backend of a rank.
func runRanks(t *testing.T, f formula, ranks, depth int, limits solver.Limits, o options,
	mutate func(rank int, o *options, p *plain)) (outcome, []error) {
	t.Helper()
	stripes, err := solver.Partition(f.mesh.Interior(), ranks, depth)
	if err != nil {
		t.Fatal(err)
	}
	h, reducers := exchangetest.NewReducer(ranks), make([]*late, ranks)
	results, errs, backends := make([]solver.Result, ranks), make([]error, ranks), make([]*plain, ranks)
	var layouts []solver.Layout
	for r := range ranks {
		layouts = append(layouts, solver.Layout{Mesh: f.mesh, Stripe: stripes[r], Depth: depth,
			Neighbour: [2]bool{r > 0 || f.mesh.PeriodicRows(), r < ranks-1 || f.mesh.PeriodicRows()},
			Norms:     o.Norms})
	}
	links := exchangetest.Links(layouts)
	var out outcome
	var wg sync.WaitGroup
	for r := range ranks {
		p := newPlain(t, layouts[r], limits)
		backends[r] = p
		if err := p.Load(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		x := solver.NewHostExchange(links[r], solver.HostOptions{})
		opts := o
		opts.Initial, opts.Depth, opts.MaxSweeps = f, depth, limits.MaxSweeps
		if r == 0 {
			opts.OnNorms = func(first int, norms []float64) error {
				if first != o.Norms.Sweep(o.Norms.In(opts.Start.Iterations)+len(out.norms)) {
					return fmt.Errorf("norms of sweep %d after %d", first, len(out.norms))
				}
				out.norms = append(out.norms, norms...)
				return nil
			}
		}
		if mutate != nil {
			mutate(r, &opts, p)
		}
		reducers[r] = &late{Reducer: h, delay: o.delay}
		wg.Go(func() { results[r], errs[r] = run(t.Context(), p, x, reducers[r], opts) })
	}
	wg.Wait()
	for r, p := range backends {
		rows := make([]byte, stripes[r].Rows()*f.mesh.RowBytes())
		if errs[r] == nil {
			if err := p.CopyRows(t.Context(), stripes[r], rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		out.field = append(out.field, rows...)
		if r > 0 && errs[0] == nil && (results[r].Iterations != results[0].Iterations ||
			results[r].Reason != results[0].Reason) {
			t.Errorf("rank %d ended with %+v, rank 0 with %+v", r, results[r], results[0])
		}
		if !slices.Equal(reducers[r].waits, reducers[0].waits) {
			t.Errorf("rank %d waited for passes %v, rank 0 for %v", r, reducers[r].waits, reducers[0].waits)
		}
	}
	out.result, out.backends, out.waits = results[0], backends, reducers[0].waits
	return out, errs
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

var bump = func(x, y int) float64 { return math.Sin(0.3*float64(x)) * math.Cos(0.2*float64(y*y%17)) }

// A smooth decay is forecast. A norm that falls faster than the forecast costs a restart from the initial field but
// does not change the result.
func TestRunRestartsWhenTheForecastIsWrong(t *testing.T) {
	mesh := solver.Mesh{NX: 3, NY: 42, DType: solver.Float64, Walls: solver.WrapRows(true)}
	f := formula{mesh: mesh, value: bump}
	var restarted bool
	for k := range 60 {
		all, _ := wanted(t, f, 0, 100)
		norms, field := wanted(t, f, all[k], 100)
		out, errs := runRanks(t, f, 2, 16, solver.Limits{MaxSweeps: 4},
			options{Goal: solver.Goal{Tolerance: all[k]}, MaxIterations: 100}, nil)
		noErrors(t, errs)
		if out.result.Iterations != len(norms) || !slices.Equal(out.norms, norms) || !bytes.Equal(out.field, field) {
			t.Errorf("k %d: %+v, want %d sweeps", k, out.result, len(norms))
		}
		for _, p := range out.backends {
			restarted = restarted || p.loaded > 1
		}
	}
	if restarted {
		t.Error("a smooth decay was not forecast")
	}

	// Exaggerated first norms make the forecast wrong; the result stays right.
	// Passes have 4 sweeps: the norms of the pass with sweep 17 arrive while the next pass is swept.
	all, _ := wanted(t, f, 0, 100)
	_, field := wanted(t, f, all[17], 100)
	out, errs := runRanks(t, f, 2, 16, solver.Limits{MaxSweeps: 4},
		options{Goal: solver.Goal{Tolerance: all[17]}, MaxIterations: 100}, func(_ int, _ *options,
			p *plain) {
			p.exaggerateBefore = 16
		})
	noErrors(t, errs)
	if out.result.Iterations != 19 || !bytes.Equal(out.field, field) {
		t.Errorf("%+v, want 19 sweeps and their field", out.result)
	}
	for r, p := range out.backends {
		if p.loaded != 2 {
			t.Errorf("rank %d loaded %d times, want 2: the case did not need a restart", r, p.loaded)
		}
	}
}

// While norms are far from the tolerance no rank waits for one, so passes are undone only at the end.
func TestRunReplaysAtMostOnePass(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 21, NY: 67, DType: solver.Float64}, value: bump}
	all, _ := wanted(t, f, 0, 60)
	out, errs := runRanks(t, f, 2, 8, solver.Limits{MaxSweeps: 8},
		options{Goal: solver.Goal{Tolerance: all[42]}, MaxIterations: 60}, nil)
	noErrors(t, errs)
	for r, p := range out.backends { // sweep 43 is the fourth of pass [40, 48): 48 sweeps, and 4 of them replayed
		if p.undone != 1 || p.loaded != 1 || p.swept != 48+4 {
			t.Errorf("rank %d: %d undone, %d loaded, %d swept; want 1, 1, 52", r, p.undone, p.loaded, p.swept)
		}
	}
}

func TestRunFailsWhenItsContextEnds(t *testing.T) {
	f := formula{mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, value: bump}
	l := solver.Layout{Mesh: f.mesh, Stripe: solver.Stripe{Lo: 1, Hi: 16}, Depth: 1, Neighbour: [2]bool{false, true}}
	p := newPlain(t, l, solver.Limits{MaxSweeps: 1})
	if err := p.Load(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	links := exchangetest.Links([]solver.Layout{l, l}) // rank 1 never starts
	x := solver.NewHostExchange(links[0], solver.HostOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := run(ctx, p, x, exchangetest.NewReducer(2), options{Initial: f, Depth: 1, MaxSweeps: 1, MaxIterations: 5,
		OnStep: func(s solver.Step, _ time.Time, _ time.Duration) {
			if s.Kind == solver.StepInterior {
				cancel(errors.New("rank 1 is gone"))
			}
		}})
	if want := "sweep 1: halo exchange: receive exchange 1: rank 1 is gone"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
