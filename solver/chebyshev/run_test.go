package chebyshev_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/cpu"
	"jacobi/solver"
	"jacobi/solver/chebyshev"
)

// solo is a run of a single rank, with everything that it needs. It is its own exchange, reducer and saver.
type solo struct {
	*cpu.Backend
	options chebyshev.Options
	layout  solver.Layout
	kept    solver.Contribution
	sweeps  []int
	norms   []float64
	saved   map[int][]byte
	halo    [2][]byte
}

// newSolo loads random values.
func newSolo(t *testing.T, m solver.Mesh, op solver.Operator) *solo {
	t.Helper()
	p, err := chebyshev.NewPlan(m, op)
	if err != nil {
		t.Fatal(err)
	}
	ring := m.PeriodicRows()
	l := p.Fit(solver.Layout{Mesh: m, Stripe: m.Interior(), Depth: 8, Operator: op, Neighbour: [2]bool{ring, ring}})
	b, err := cpu.New(l, cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.Load(t.Context(), noise{m}); err != nil {
		t.Fatal(err)
	}
	s := &solo{Backend: b, layout: l, saved: map[int][]byte{}}
	s.options = chebyshev.Options{Plan: p, Magnitude: l.Magnitude, Depth: l.Depth,
		MaxSweeps: min(l.Depth, cpu.MaxSweeps(m)), MaxIterations: 1 << 40,
		OnNorm: func(sweep int, norm float64) error {
			s.sweeps, s.norms = append(s.sweeps, sweep), append(s.norms, norm)
			return nil
		}}
	return s
}

func (s *solo) run(ctx context.Context) (solver.Result, error) {
	return chebyshev.Run(ctx, s.Backend, s, sums{s}, s.options)
}

// field returns the rows of the field.
func (s *solo) field(t *testing.T) []byte {
	t.Helper()
	rows := make([]byte, s.layout.Stripe.Rows()*s.layout.Mesh.RowBytes())
	if err := s.CopyRows(t.Context(), s.layout.Stripe, rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// Post and Wait implement solver.Exchange: the rank is its own neighbour in a mesh with periodic rows.
func (s *solo) Post(ctx context.Context, _ solver.ExchangeNumber) error {
	for side, has := range s.layout.Neighbour {
		if has {
			s.halo[side] = make([]byte, s.layout.Depth*s.layout.Mesh.RowBytes())
			if err := s.CopyEdge(ctx, solver.Side(side), s.halo[side]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *solo) Wait(ctx context.Context, _ solver.ExchangeNumber) error {
	for side, has := range s.layout.Neighbour {
		if has {
			if err := s.SetHalo(ctx, solver.Side(side).Opposite(), s.halo[side]); err != nil {
				return err
			}
		}
	}
	return nil
}

// sums is the reducer of a single rank.
type sums struct{ *solo }

func (r sums) Post(_ context.Context, _ uint64, c solver.Contribution) error {
	r.kept = c
	return nil
}

func (r sums) Wait(context.Context, uint64) (solver.Contribution, error) { return r.kept, nil }

// keeper is a saver that keeps fields in memory.
type keeper struct{ *solo }

func (k keeper) Wanted() bool { return false }
func (k keeper) Busy() bool   { return false }

func (k keeper) Save(ctx context.Context, sweeps int) error {
	k.saved[sweeps] = make([]byte, k.layout.Stripe.Rows()*k.layout.Mesh.RowBytes())
	return k.CopyRows(ctx, k.layout.Stripe, k.saved[sweeps])
}

// noise yields random values in [-1, 1), and a source and fixed points to match.
type noise struct{ mesh solver.Mesh }

func (n noise) Row(iy int, dst []byte) error {
	if n.mesh.PeriodicRows() {
		iy = 1 + (iy-1+n.mesh.NY-2)%(n.mesh.NY-2)
	}
	r := rand.New(rand.NewPCG(uint64(iy), 7))
	row := make([]float64, n.mesh.NX)
	for x := range row {
		row[x] = 2*r.Float64() - 1
	}
	_, err := binary.Encode(dst, binary.LittleEndian, row)
	return err
}

func (n noise) SourceRow(iy int, dst []byte) error { return n.Row(iy+1, dst) }

func (n noise) FixedRow(iy int, dst []bool) error {
	for ix := range dst {
		dst[ix] = iy > 20 && iy < 30 && ix > 15 && ix < 50
	}
	return nil
}

// problems are meshes with all kinds of walls, operators and fixed points. Between Neumann walls the norm is up to
// twice that in which J is symmetric.
func problems() map[string]struct {
	mesh  solver.Mesh
	op    solver.Operator
	slack float64
} {
	const p, n = solver.Periodic, solver.Neumann
	mesh := func(w solver.Walls) solver.Mesh {
		return solver.Mesh{NX: 70, NY: 90, DType: solver.Float64, Walls: w}
	}
	type problem = struct {
		mesh  solver.Mesh
		op    solver.Operator
		slack float64
	}
	general := solver.Operator{Scale: 0.4995, Blend: 0.3, Source: noise{mesh(solver.Walls{})}}
	inside := solver.Operator{Fixed: noise{}}
	return map[string]problem{
		"fixed":            {mesh(solver.Walls{}), solver.Operator{}, 1},
		"periodic rows":    {mesh(solver.WrapRows(true)), solver.Operator{}, 1},
		"periodic columns": {mesh(solver.Walls{Left: p, Right: p}), solver.Operator{}, 1},
		"periodic":         {mesh(solver.Walls{Left: p, Right: p, Top: p, Bottom: p}), general, 1},
		"neumann":          {mesh(solver.Walls{Left: n, Right: n, Top: n, Bottom: n}), general, 2},
		"neumann, fixed":   {mesh(solver.Walls{Left: n, Bottom: n}), solver.Operator{}, 2},
		"points":           {mesh(solver.Walls{}), inside, 1},
		"neumann, points":  {mesh(solver.Walls{Left: n, Right: n, Top: n, Bottom: n}), inside, 2},
	}
}

// A cycle multiplies the norm by at most Plan.Factor, and a run ends when only rounding is left.
func TestFactor(t *testing.T) {
	for name, c := range problems() {
		t.Run(name, func(t *testing.T) {
			s := newSolo(t, c.mesh, c.op)
			got, err := s.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stride := s.options.Plan.Stride
			if got.Reason != solver.Stalled || got.Sweeps != (len(s.norms)-1)*stride+1 ||
				got.Norm != s.norms[len(s.norms)-1] || *got.Decisive != (solver.Decisive{Sweep: got.Sweeps - 1,
				Norm: got.Norm}) {
				t.Errorf("%+v with %d norms", got, len(s.norms))
			}
			if !(got.Norm < 1e-12*s.norms[0]) {
				t.Errorf("stalled at %g of %g", got.Norm, s.norms[0])
			}
			for i, norm := range s.norms {
				if s.sweeps[i] != i*stride {
					t.Fatalf("norm %d is of sweep %d", i, s.sweeps[i])
				}
				before := i - i%chebyshev.Quarters
				if norm > c.slack*s.norms[before] && norm > 1e-12*s.norms[0] {
					t.Errorf("norm %d is %g, that of its cycle was %g", i, norm, s.norms[before])
				}
				if i >= chebyshev.Quarters && norm > 1e-12*s.norms[0] &&
					norm > c.slack*s.options.Plan.Factor()*s.norms[i-chebyshev.Quarters] {
					t.Errorf("norm %d is %g, %g of that a cycle before; want %g", i, norm,
						norm/s.norms[i-chebyshev.Quarters], s.options.Plan.Factor())
				}
			}
		})
	}
}

// The number of sweeps in a pass does not change a bit.
func TestPassesDoNotMatter(t *testing.T) {
	for name, c := range problems() {
		var want *solo
		var field []byte
		for _, sweeps := range []int{8, 1, 3} {
			s := newSolo(t, c.mesh, c.op)
			s.options.MaxSweeps = min(s.options.MaxSweeps, sweeps)
			s.options.MaxIterations = 3*s.options.Plan.Stride + 1
			if _, err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want, field = s, s.field(t)
			} else if !slices.Equal(s.norms, want.norms) || !bytes.Equal(s.field(t), field) {
				t.Errorf("%s: %d sweeps a pass: norms %v, want %v; same field: %v", name, sweeps, s.norms, want.norms,
					bytes.Equal(s.field(t), field))
			}
		}
	}
}

// A run that starts from a saved state ends with the same bits. A tolerance, a limit and a request end it after a plain
// sweep.
func TestEndsAndGoesOn(t *testing.T) {
	c := problems()["points"]
	s := newSolo(t, c.mesh, c.op)
	stride := s.options.Plan.Stride
	s.options.Saver, s.options.SaveEvery, s.options.Relative = keeper{s}, 2*stride+5, 1e-8
	want, err := s.run(t.Context())
	if err != nil || want.Reason != solver.Converged {
		t.Fatalf("%+v, %v", want, err)
	}
	field, saves := s.field(t), 0
	for sweeps, rows := range s.saved {
		saves++
		again := newSolo(t, c.mesh, c.op)
		if err := again.Load(t.Context(), state{noise{c.mesh}, again.layout, rows}); err != nil {
			t.Fatal(err)
		}
		done := s.norms[:(sweeps-1)/stride+1]
		again.options.Relative = 1e-8
		again.options.Start = solver.Start{Sweeps: sweeps, Norms: done, First: done[0]}
		got, err := again.run(t.Context())
		norms := append(slices.Clone(done), again.norms...)
		if err != nil || got.Sweeps != want.Sweeps || !slices.Equal(norms, s.norms) ||
			!bytes.Equal(again.field(t), field) {
			t.Errorf("from sweep %d: %+v, %v; want %+v", sweeps, got, err, want)
		}
	}
	if s.saved[3*stride+1] == nil || saves < 2 {
		t.Errorf("%d saves, after sweep %d: %v", saves, 3*stride, s.saved[3*stride+1] != nil)
	}
	for name, test := range map[string]struct {
		change func(o *chebyshev.Options)
		sweeps int
		reason solver.StopReason
	}{
		"tolerance": {func(o *chebyshev.Options) { o.Tolerance = s.norms[5] }, 5*stride + 1, solver.Converged},
		"limit":     {func(o *chebyshev.Options) { o.MaxIterations = 4 * stride }, 3*stride + 1, solver.MaxIterations},
		"request":   {func(o *chebyshev.Options) { o.Stop = func() bool { return true } }, 1, solver.Interrupted},
	} {
		again := newSolo(t, c.mesh, c.op)
		test.change(&again.options)
		got, err := again.run(t.Context())
		if err != nil || got.Sweeps != test.sweeps || got.Reason != test.reason ||
			!slices.Equal(again.norms, s.norms[:len(again.norms)]) {
			t.Errorf("%s: %+v, %v; want %d sweeps, %s", name, got, err, test.sweeps, test.reason)
		}
	}
}

// state is a saved field.
type state struct {
	noise
	layout solver.Layout
	rows   []byte
}

func (s state) Row(iy int, dst []byte) error {
	own, n := s.layout.Stripe, s.layout.Mesh.RowBytes()
	if iy < own.Lo || iy >= own.Hi {
		return s.noise.Row(iy, dst)
	}
	copy(dst, s.rows[(iy-own.Lo)*n:])
	return nil
}

func TestRefusedStarts(t *testing.T) {
	c := problems()["fixed"]
	s := newSolo(t, c.mesh, c.op)
	stride := s.options.Plan.Stride
	for want, o := range map[string]chebyshev.Options{
		fmt.Sprintf("start after %d sweeps with 2 norms: norms are %d sweeps apart", stride, stride): {
			Start: solver.Start{Sweeps: stride, Norms: []float64{2, 1}}},
		"start after 1 sweeps of a run that has ended: converged": {
			Start: solver.Start{Sweeps: 1, Norms: []float64{2}}, Tolerance: 3},
		fmt.Sprintf("start after %d sweeps of a run that ends after %d", 2*stride+1, stride+1): {
			Start: solver.Start{Sweeps: 2*stride + 1, Norms: []float64{3, 2, 1}}, MaxIterations: stride + 1},
		fmt.Sprintf("at least %d are wanted", stride+1): {MaxIterations: stride},
	} {
		s.options.Start, s.options.Tolerance, s.options.MaxIterations = o.Start, o.Tolerance, o.MaxIterations
		if o.MaxIterations == 0 {
			s.options.MaxIterations = 1 << 40
		}
		if _, err := s.run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Sample implements solver.Sampler.
func (k keeper) Sample(ctx context.Context, at solver.Sample) error {
	if i := (at.Sweeps - 1) / k.options.Plan.Stride; at.Sweeps > 0 && at.Norm != k.norms[i] {
		return fmt.Errorf("norm %g with the sample of %d sweeps, want %g", at.Norm, at.Sweeps, k.norms[i])
	}
	return k.Save(ctx, at.Sweeps)
}

// A run is sampled at its beginning, after the first plain sweep from each multiple of the interval on, and after plain
// sweeps when a rank asks.
func TestSamples(t *testing.T) {
	c := problems()["fixed"]
	stride := newSolo(t, c.mesh, c.op).options.Plan.Stride
	run := func(start, every int, asks func(*solo) bool) []int {
		t.Helper()
		s := newSolo(t, c.mesh, c.op)
		s.options.MaxIterations = 6*stride + 1
		if start > 0 {
			s.options.Start = solver.Start{Sweeps: start, Norms: []float64{1}, First: 1}
			s.norms = make([]float64, (start-1)/stride+1)
			s.norms[len(s.norms)-1] = 1
		}
		s.options.Samples = solver.Samples{{Sampler: keeper{s}, Every: every, Wanted: func() bool { return asks(s) }}}
		if _, err := s.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(s.saved))
	}
	never := func(*solo) bool { return false }
	for _, test := range []struct {
		start, every int
		asks         func(*solo) bool
		want         []int
	}{
		{0, 2*stride + 5, never, []int{0, 3*stride + 1, 5*stride + 1}},
		{0, 3*stride + 1, never, []int{0, 3*stride + 1}},
		{0, 100 * stride, never, []int{0}},
		{0, 0, func(s *solo) bool { return len(s.norms) == 2 }, []int{2*stride + 1}},
		{3*stride + 1, 2*stride + 5, never, []int{3*stride + 1, 5*stride + 1}},
		{2*stride + 1, 2*stride + 5, never, []int{3*stride + 1, 5*stride + 1}},
	} {
		if got := run(test.start, test.every, test.asks); !slices.Equal(got, test.want) {
			t.Errorf("from %d, every %d sweeps of strides of %d: samples %v, want %v", test.start, test.every, stride,
				got, test.want)
		}
	}
}
