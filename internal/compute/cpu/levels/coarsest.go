package levels

import (
	"context"
	"fmt"
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// coarsest solves the coarsest level, which is held as a whole.
type coarsest struct {
	multigrid.Blocking
	solution func(x, b []float64)
	points   []unknown
	x, b     []float64 // by block and slot
}

// unknown is a point of the coarsest level, with its place in the solution.
type unknown struct {
	at, x, y int
	scaling  float64 // of the right-hand side and of the solution: h of a weighted operator, 1 of another one
}

func newCoarsest(l multigrid.Layout) (*coarsest, error) {
	d, err := l.NewDirect()
	if err != nil {
		return nil, err
	}
	return coarsestOf(d.Blocking, d.Solve, func(at, _, _ int) float64 {
		if d.Free(at/d.Slots, at%d.Slots) {
			return 1
		}
		return 0
	}), nil
}

// newWeightedCoarsest returns that of a weighted operator with the equations q.
func newWeightedCoarsest(e engine, l multigrid.Layout, q *equations) (*coarsest, error) {
	f, err := l.NewFactors(func(x, y int) multigrid.Point {
		s := q.stencil(y)
		return multigrid.Point{C: s.c[x+1], E: s.e[x+1], S: s.s[x+1], SE: s.se[x+1], SW: s.sw[x+1]}
	})
	if err != nil {
		return nil, err
	}
	s, h := newScaler(e, q), newRows[float64](q.Mesh.NX, 1)[0]
	return coarsestOf(f.Blocking, f.Solve, func(_, x, y int) float64 {
		s.scale(y, nil, h)
		return h[x]
	}), nil
}

// coarsestOf returns the one with a solution by blocks. scaling returns 0 for points that are not unknowns.
func coarsestOf(k multigrid.Blocking, solution func(x, b []float64), scaling func(at, x, y int) float64) *coarsest {
	n := k.Blocks * k.Slots
	c := &coarsest{Blocking: k, solution: solution, x: make([]float64, n), b: make([]float64, n)}
	for at := range n {
		x, y := k.Point(at/k.Slots, at%k.Slots)
		if v := scaling(at, x, y); v > 0 {
			c.points = append(c.points, unknown{at, x, y, v})
		}
	}
	return c
}

// solve sets u at the unknowns of a level; the others stay 0.
func (c *coarsest) solve(l *level[float32]) {
	for _, p := range c.points {
		c.b[p.at] = float64(l.b.at(p.y)[p.x]) * p.scaling
	}
	c.solution(c.x, c.b)
	for _, p := range c.points {
		l.u.at(p.y)[p.x] = float32(c.x[p.at] * p.scaling)
	}
	for y := l.own.Lo; y < l.own.Hi; y++ {
		repeat(l.u.at(y), l.Mesh)
	}
}

// Coarser implements multigrid.Device.
func (d *Device) Coarser(l multigrid.Layout) (multigrid.Device, error) {
	c, err := New(l, d.threads, d.kernel)
	if err != nil {
		return nil, err // not c: a nil *Device is a non-nil interface
	}
	d.coarser = c
	return c, nil
}

// finestOf returns the finest level of the device of the next coarser mesh.
func (d *Device) finestOf(coarse multigrid.Device) (*level[float64], error) {
	c, ok := coarse.(*Device)
	if !ok {
		return nil, fmt.Errorf("cpu levels: %T is no device of this package", coarse)
	}
	if m, want := c.finest.Mesh, d.coarse[0].Mesh; m.NX != want.NX || m.NY != want.NY {
		return nil, fmt.Errorf("cpu levels: a mesh of %d x %d points, not %d x %d", m.NX, m.NY, want.NX,
			want.NY)
	}
	return c.finest, nil
}

// Interpolate implements multigrid.Device.
func (d *Device) Interpolate(ctx context.Context, coarse multigrid.Device) error {
	from, err := d.finestOf(coarse)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l := d.finest
	l.each(l.own, func(_ *pipe[float64], rows solver.Stripe) {
		between := newRows[float64](from.Mesh.NX, 1)[0]
		for y := rows.Lo; y < rows.Hi; y++ {
			interpolate(l, from, between, y)
		}
	})
	return nil
}

// interpolate sets row y of l to the field of a coarser mesh. between has as many values as a row of that.
func interpolate(l, from *level[float64], between []float64, y int) {
	at, w := l.Y.Between(y)
	weight, north := float64(w), from.u.at(at)
	south := north // its weight is 0
	if from.u.has(at + 1) {
		south = from.u.at(at + 1)
	}
	for x := range north {
		between[x] = math.FMA(weight, south[x]-north[x], north[x])
	}
	dst, t := l.u.at(y), between[:len(between)+1] // the value behind the row has weight 0
	fill := func(lo, hi int) {
		for x := lo; x < hi; x++ {
			k := l.columns.coarse[x]
			dst[x] = math.FMA(float64(l.columns.weight[x]), t[k+1]-t[k], t[k])
		}
	}
	lo, hi := l.Mesh.InteriorColumns()
	for _, r := range l.fixedIn(y) {
		fill(lo, r.Lo)
		lo = r.Hi
	}
	fill(lo, hi)
	repeat(dst, l.Mesh)
}

// RestrictSource implements multigrid.Device.
func (d *Device) RestrictSource(ctx context.Context, coarse multigrid.Device) error {
	to, err := d.finestOf(coarse)
	if err != nil {
		return err
	}
	l := d.finest
	if l.b.rows == nil || to.b.rows == nil {
		return errArray
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.each(d.layout.Below(), func(_ *pipe[float64], rows solver.Stripe) {
		scratch := newRows[float64](l.Mesh.NX, 2)
		for y := rows.Lo; y < rows.Hi; y++ {
			restrictSource(l, to.b.at(y), scratch[0], scratch[1], y)
		}
	})
	return nil
}

// restrictSource sets row y of a coarser mesh to the source of l. b and sums are scratch rows of l, 0 but for the swept
// columns.
func restrictSource(l *level[float64], dst, b, sums []float64, y int) {
	axis := l.Y
	first, n := axis.Around(y)
	rows := l.reach(solver.Stripe{Lo: first, Hi: first + n})
	lo, hi := l.Mesh.InteriorColumns()
	for k := rows.Lo; k < rows.Hi; k++ {
		copy(b[lo:hi], l.b.at(k)[lo:hi])
		for _, r := range l.fixedIn(k) {
			clear(b[r.Lo:r.Hi])
		}
		w := float64(axis.Weight(y, k))
		for x := lo; x < hi; x++ {
			if k == rows.Lo {
				sums[x] = w * b[x]
			} else {
				sums[x] = math.FMA(w, b[x], sums[x])
			}
		}
	}
	repeat(sums, l.Mesh)
	c := l.columns
	for x := c.lo; x < c.hi; x++ {
		v := sums[c.first[x]:cap(sums)][:multigrid.Taps]
		r := float64(c.taps[0][x]) * v[0]
		for k := 1; k < multigrid.Taps; k++ {
			r = math.FMA(float64(c.taps[k][x]), v[k], r)
		}
		dst[x] = math.FMA(l.Gain, r, 0)
	}
}

// columns is the transfer between the columns of a level and those of the next coarser one.
type columns struct {
	coarse []int32   // by fine column: the coarse column before it
	weight []float32 // by fine column: the weight of the one after that
	first  []int32   // by coarse column: the first fine column of the restriction
	taps   [multigrid.Taps][]float32
	// lo and hi are the coarse columns that are swept.
	lo, hi int
}

func newColumns(a multigrid.Axis, fine, coarse solver.Mesh) *columns {
	c := &columns{coarse: make([]int32, fine.NX), weight: make([]float32, fine.NX), first: make([]int32, coarse.NX)}
	for x := range fine.NX {
		at, w := a.Between(x)
		c.coarse[x], c.weight[x] = int32(at), w
	}
	for k := range c.taps {
		c.taps[k] = make([]float32, coarse.NX)
	}
	c.lo, c.hi = coarse.InteriorColumns()
	for x := c.lo; x < c.hi; x++ {
		first, n := a.Around(x)
		end := first + n
		first = max(0, first)
		c.first[x] = int32(first)
		for k := range n {
			if first+k < min(end, fine.NX) {
				c.taps[k][x] = a.Weight(x, first+k)
			}
		}
	}
	return c
}
