package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// smoothMaterial is -div(a grad u) = 1 on a square of n x n points, 0 on its walls, with a = 1 + 0.9 sin(6 pi x)
// sin(4 pi y).
type smoothMaterial struct {
	n    int
	x, y []float64
}

func newSmoothMaterial(n int) smoothMaterial {
	m := smoothMaterial{n: n}
	for i := range n {
		at := float64(i) / float64(n-1) * math.Pi
		m.x, m.y = append(m.x, 0.9*math.Sin(6*at)), append(m.y, math.Sin(4*at))
	}
	return m
}

// face returns the coupling of a point to the one dy rows below and dx columns behind it, in a unit that makes the
// largest diagonal at most 1.
func (m smoothMaterial) face(y, x, dy, dx int) float64 {
	if y < 0 || x < 0 || y+dy >= m.n || x+dx >= m.n {
		return 0
	}
	v, w := 1+float64(m.x[x]*m.y[y]), 1+float64(m.x[x+dx]*m.y[y+dy])
	return 2 * v * w / (v + w) / 8
}

// Row implements solver.RowSource.
func (smoothMaterial) Row(_ int, dst []byte) error {
	clear(dst)
	return nil
}

// ValueRow implements solver.ValueRows.
func (m smoothMaterial) ValueRow(y int, k solver.Value, dst []byte) error {
	h := 1 / float64(m.n-1)
	for x := range m.n {
		var v float64
		switch k {
		case solver.EastFace:
			v = m.face(y, x, 0, 1)
		case solver.SouthFace:
			v = m.face(y, x, 1, 0)
		default:
			v = (m.face(y, x-1, 0, 1) + m.face(y, x, 0, 1)) + (m.face(y-1, x, 1, 0) + m.face(y, x, 1, 0))
			if k == solver.Source {
				v = h * h / v
			}
		}
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
	}
	return nil
}

// openSmooth opens the levels of a problem, with conjugate gradients, and loads it.
func openSmooth(ctx context.Context, m smoothMaterial) (multigrid.Grid, *CG, error) {
	op := solver.Operator{Weighted: true, Ratio: 1, Values: m}
	p, err := multigrid.NewPlan(solver.Mesh{NX: m.n, NY: m.n, DType: solver.Float64}, op)
	if err != nil {
		return multigrid.Grid{}, nil, err
	}
	stripes, agglomerated := p.Divide([]solver.Stripe{p.Levels[0].Mesh.Interior()}, multigrid.AgglomeratedPoints)
	l := p.LayoutOf(stripes, agglomerated, 0)
	h := 1 / float64(m.n-1)
	l.Values, l.Magnitude = m, solver.MagnitudeOf(10*h*h)+multigrid.WeightedHeadroom
	v, err := NewLevels(gpu, l, Options{})
	if err != nil {
		return multigrid.Grid{}, nil, err
	}
	s, err := NewCG(v)
	if err != nil {
		return multigrid.Grid{}, nil, err
	}
	return multigrid.Grid{Device: v, Layout: l, Stripes: stripes}, s, v.Load(ctx, m)
}

// BenchmarkWeightedLevels times the set-up of levels, the solution to 1e-8 of the first norm and its parts.
func BenchmarkWeightedLevels(b *testing.B) {
	if noGPU != nil {
		b.Skipf("NOT RUN, no GPU: %v", noGPU)
	}
	for _, n := range []int{1025, 4096, 16384} {
		timeWeighted(b, n)
	}
}

func timeWeighted(b *testing.B, n int) {
	ctx := b.Context()
	began := time.Now()
	g, s, err := openSmooth(ctx, newSmoothMaterial(n))
	if err != nil {
		b.Fatal(err)
	}
	v := g.Device.(*Levels)
	defer v.Close()
	name, w := fmt.Sprintf("n=%d", n), v.weighted
	for l := range 2 {
		v.time(b, fmt.Sprintf("%s/coarsen%d", name, l), 0, func() error { return w.coarsen(l) })
		v.time(b, fmt.Sprintf("%s/complete%d", name, l), 0, func() error { return w.complete(l) })
	}
	v.time(b, name+"/scale1", 0, func() error { return w.scale(1, w.levels[1].own, true) })
	loaded := time.Now()
	if err := errors.Join(g.SetUp(ctx), s.Load(ctx, nil), v.stream.Synchronize()); err != nil {
		b.Fatal(err)
	}
	b.Logf("%s: %.3g s with loading, %.4g ms to set up, %d MiB", name, loaded.Sub(began).Seconds(),
		1e3*time.Since(loaded).Seconds(), v.Bytes()>>20)
	for range 3 {
		l := v.levels[0]
		for _, a := range []*field{&l.u, &l.v} {
			if err := v.stream.Fill(a.base, 0, int(a.bytes())); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Load(ctx, nil); err != nil {
			b.Fatal(err)
		}
		sums, began := solver.NewReductions(&kept{}, &solver.Watch{}), time.Now()
		end, err := solver.Drive(ctx, multigrid.New(g, sums, multigrid.Options{CG: s}), sums, solver.Options{
			MaxIterations: 50, Goal: solver.Goal{Relative: 1e-8}, Magnitude: v.layout.Magnitude})
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%s: %d cycles (%s), norm %.3g, %.4g ms", name, end.Iterations, end.Reason, end.Norm,
			1e3*time.Since(began).Seconds())
	}
	points := int64(n) * int64(n)
	for l := range 2 {
		for i, c := range w.points[l].down {
			v.time(b, fmt.Sprintf("%s/down%d.%d", name, l, i), points, func() error { return c.launch(v.stream) })
		}
		v.time(b, fmt.Sprintf("%s/up%d", name, l), points, func() error { return w.points[l].up.launch(v.stream) })
	}
	for i := 1; i < len(v.levels)-1; i++ {
		v.time(b, fmt.Sprintf("%s/levels%d", name, i), 0, func() error { return v.weighted.cycles(i) })
	}
	v.time(b, name+"/coarsest", 0, func() error { return v.weighted.coarsest.launch(v.stream) })
	v.time(b, name+"/products", points, func() error { return s.launchProducts() })
	v.time(b, name+"/step", points, func() error { return s.Step(ctx, 1, 1) })
}
