package multigrid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/multigrid"
)

// keeper is a solver.Saver that keeps fields in memory.
type keeper struct {
	device multigrid.Device
	rows   solver.Stripe
	mesh   solver.Mesh
	saved  map[int][]byte // by cycles
	wanted bool
}

func (k *keeper) Wanted() bool { return k.wanted }

func (k *keeper) Busy() bool { return false }

func (k *keeper) Save(ctx context.Context, cycles int) error {
	field := make([]byte, k.rows.Rows()*k.mesh.RowBytes())
	k.saved[cycles] = field
	return k.device.CopyRows(ctx, 0, multigrid.Unknowns, k.rows, field)
}

// solo is a run of a single rank.
type solo struct {
	device  multigrid.Device
	keeper  *keeper
	norms   []float64
	layout  multigrid.Layout
	options options
}

// options are the parameters of a run.
type options struct {
	solver.Options
	multigrid multigrid.Options
}

// run does cycles with a single rank until the run ends.
func run(ctx context.Context, d multigrid.Device, l multigrid.Layout, o options) (solver.Result, error) {
	sums := solver.NewReductions(exchangetest.NewReducer(1), &solver.Watch{})
	o.Magnitude, o.multigrid.Cycles = l.Magnitude, o.Start.Iterations
	return solver.Drive(ctx, multigrid.New(multigrid.Grid{Device: d, Layout: l}, sums, o.multigrid), sums, o.Options)
}

func newSolo(t *testing.T) *solo {
	t.Helper()
	mesh := solver.Mesh{NX: 70, NY: 50, DType: solver.Float64}
	d, l := open(t, mesh, solver.Operator{}, noise{mesh}, 0)
	s := &solo{device: d, layout: l,
		keeper: &keeper{device: d, rows: mesh.Interior(), mesh: mesh, saved: map[int][]byte{}}}
	s.options.MaxIterations = 50
	s.options.OnNorms = func(cycles int, norms []float64) error {
		if cycles != s.options.Start.Iterations+len(s.norms) {
			return fmt.Errorf("norm of %d cycles after %d norms", cycles, len(s.norms))
		}
		s.norms = append(s.norms, norms...)
		return nil
	}
	return s
}

func (s *solo) run(t *testing.T) solver.Result {
	t.Helper()
	r, err := run(t.Context(), s.device, s.layout, s.options)
	if err != nil {
		t.Fatal(err)
	}
	if r.Iterations != s.options.Start.Iterations+len(s.norms)-1 || r.Norm != s.norms[len(s.norms)-1] {
		t.Fatalf("%d cycles with norm %g; norms %g", r.Iterations, r.Norm, s.norms)
	}
	return r
}

// field returns the field of the device.
func (s *solo) field(t *testing.T) []byte {
	t.Helper()
	k := *s.keeper
	k.saved = map[int][]byte{}
	if err := k.Save(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return k.saved[0]
}

// A run ends with the field whose norm meets a tolerance, at the largest number of cycles, when it is stopped, or when
// only rounding is left.
func TestRunEnds(t *testing.T) {
	all := newSolo(t)
	if r := all.run(t); r.Reason != solver.Stalled || r.Iterations != 11 || r.Norm > 1e-13 {
		t.Fatalf("%d cycles (%s), norm %g; want a field that only rounding changes", r.Iterations, r.Reason, r.Norm)
	}
	calls := 0
	for _, c := range []struct {
		change func(*options)
		reason solver.StopReason
		cycles int
	}{
		{func(o *options) { o.Goal.Tolerance = all.norms[3] }, solver.Converged, 3},
		{func(o *options) { o.Goal.Relative = all.norms[4] / all.norms[0] * 1.0001 }, solver.Converged, 4},
		{func(o *options) { o.Goal.Tolerance = 2 * all.norms[0] }, solver.Converged, 0},
		{func(o *options) { o.MaxIterations = 5 }, solver.MaxIterations, 5},
		{func(o *options) { o.Stop = func() bool { calls++; return calls == 3 } }, solver.Interrupted, 2},
	} {
		s := newSolo(t)
		s.options.Saver, s.options.SaveEvery = s.keeper, 1
		c.change(&s.options)
		r := s.run(t)
		if r.Reason != c.reason || r.Iterations != c.cycles || !slices.Equal(s.norms, all.norms[:c.cycles+1]) {
			t.Errorf("%d cycles (%s), norms %g; want %d (%s), %g", r.Iterations, r.Reason, s.norms, c.cycles, c.reason,
				all.norms[:c.cycles+1])
		}
		if len(s.keeper.saved) != max(0, c.cycles-1) {
			t.Errorf("%s: %d states saved of %d cycles, want all but the first and the last", c.reason,
				len(s.keeper.saved), c.cycles)
		}
	}
}

// A run that slackens at the floor of rounding goes on only if it may meet a tolerance that the user has named.
func TestToleranceAtTheFloor(t *testing.T) {
	all := newSolo(t)
	last := all.run(t)
	for _, c := range []struct {
		goal   solver.Goal
		reason solver.StopReason
		more   int // cycles
	}{
		{solver.Goal{Tolerance: 0.9 * last.Norm}, solver.Converged, 1},
		{solver.Goal{Tolerance: 0.9 * last.Norm, Unnamed: true}, solver.Stalled, 0},
		{solver.Goal{Tolerance: last.Norm / 17}, solver.Stalled, 0},
	} {
		s := newSolo(t)
		s.options.Goal = c.goal
		if r := s.run(t); r.Reason != c.reason || r.Iterations != last.Iterations+c.more {
			t.Errorf("%+v: %d cycles (%s), want %d (%s)", c.goal, r.Iterations, r.Reason, last.Iterations+c.more,
				c.reason)
		}
	}
}

// stuck is a device whose norm stays the same.
type stuck struct{ multigrid.Device }

func (stuck) Sum(context.Context) (sum solver.Sum, err error) {
	sum.Add(1e-9, 0)
	return sum, nil
}

// Norms that no longer fall are no stall while they are above what rounding leaves: the run goes on for a while, and
// ends as stagnated.
func TestRunStagnates(t *testing.T) {
	s := newSolo(t)
	s.options.MaxIterations = 1000
	r, err := run(t.Context(), stuck{s.device}, s.layout, s.options)
	if err != nil || r.Reason != solver.Stagnated || r.Iterations != 40+80+160 || r.Decisive == nil {
		t.Errorf("%d cycles (%s), %v; want 280 (stagnated)", r.Iterations, r.Reason, err)
	}
}

// faint is a device whose norms after the first one are below what the sum shows.
type faint struct {
	multigrid.Device
	loud bool
}

func (f *faint) Sum(context.Context) (sum solver.Sum, err error) {
	if f.loud {
		f.loud = false
		sum.Add(1e-9, 0)
	}
	return sum, nil
}

// A norm of 0 is no floor of rounding where values are so large that the sum hides updates above it: the run goes on
// for a while, and ends as stagnated.
func TestFaintNormsAreNoFloor(t *testing.T) {
	for _, c := range []struct {
		larger solver.Magnitude
		reason solver.StopReason
		cycles int
	}{{0, solver.Stalled, 1}, {40, solver.Stagnated, 1 + 4 + 8 + 16}} {
		s := newSolo(t)
		s.options.MaxIterations = 1000
		s.layout.Magnitude += c.larger
		r, err := run(t.Context(), &faint{s.device, true}, s.layout, s.options)
		if err != nil || r.Reason != c.reason || r.Iterations != c.cycles {
			t.Errorf("%d cycles (%s), %v; want %d (%s)", r.Iterations, r.Reason, err, c.cycles, c.reason)
		}
	}
}

// A field that no sweep changes is the solution from the start.
func TestSolutionFromTheStart(t *testing.T) {
	s := newSolo(t)
	if err := s.device.Load(t.Context(), solver.Zeros{}); err != nil {
		t.Fatal(err)
	}
	if r := s.run(t); r.Reason != solver.Converged || r.Iterations != 0 || r.Norm != 0 {
		t.Errorf("%d cycles (%s), norm %g; want 0 (converged), 0", r.Iterations, r.Reason, r.Norm)
	}
}

// broken is a device whose sum is not a number.
type broken struct{ multigrid.Device }

func (broken) Sum(context.Context) (solver.Sum, error) { return solver.Sum{Bad: true}, nil }

// A norm that is not finite, and errors of the device and of the caller, end the run and name the cycle.
func TestRunFails(t *testing.T) {
	s := newSolo(t)
	_, err := run(t.Context(), broken{s.device}, s.layout, s.options)
	want := "cycle 0: the norm is NaN: the field has left the range of its type or was damaged"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	s.options.OnNorms = func(cycles int, _ []float64) error {
		if cycles == 2 {
			cancel(cause)
		}
		return nil
	}
	r, err := run(ctx, s.device, s.layout, s.options)
	if !errors.Is(err, cause) || r.Iterations != 2 {
		t.Errorf("%d cycles, error %v; want 2, %v", r.Iterations, err, cause)
	}
}

// Sample implements solver.Sampler.
func (k *keeper) Sample(ctx context.Context, at solver.Sample) error {
	return k.Save(ctx, at.Iterations)
}

// A run is sampled at its beginning and its end, too; on request after the same cycle.
func TestSamples(t *testing.T) {
	start := []float64{4, 3, 2, 1}
	for _, c := range []struct {
		start, every int
		asks         func(*solo) bool
		want         []int
	}{
		{0, 2, nil, []int{0, 2, 4, 6}},
		{0, 4, nil, []int{0, 4}},
		{3, 2, nil, []int{4, 6}},
		{4, 2, nil, []int{4, 6}},
		{0, 0, func(s *solo) bool { return len(s.norms) == 3 }, []int{3}},
	} {
		s := newSolo(t)
		s.options.MaxIterations, s.options.Start = 6, solver.Start{Iterations: c.start, Norms: start[:c.start]}
		s.options.Samples = solver.Samples{{Sampler: s.keeper, Every: c.every,
			Wanted: func() bool { return c.asks != nil && c.asks(s) }}}
		s.run(t)
		if got := slices.Sorted(maps.Keys(s.keeper.saved)); !slices.Equal(got, c.want) {
			t.Errorf("from %d, every %d cycles: samples %v, want %v", c.start, c.every, got, c.want)
		}
		if at := c.want[len(c.want)-1]; at == 6 && !bytes.Equal(s.keeper.saved[6], s.field(t)) {
			t.Errorf("from %d: the last sample is not the field of the end", c.start)
		}
	}
}
