package levels

import (
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// solveCoarsest sets the unknowns of the coarsest level; the other points stay 0.
func (d *Device) solveCoarsest() {
	l := d.coarse[len(d.coarse)-1]
	d.factors.Solve(func(x, y int) float64 { return float64(l.b.at(y)[x]) },
		func(x, y int, u float64) { l.u.at(y)[x] = float32(u) })
	for y := l.own.Lo; y < l.own.Hi; y++ {
		repeat(l.u.at(y), l.Mesh)
	}
}

// coarsestPoint returns a function for the equations of the points of the coarsest level, while it is set up.
func (d *Device) coarsestPoint() func(x, y int) multigrid.Point {
	q := d.equations[len(d.coarse)]
	scaler, h := newScaler(d.finest.engine, q), newRows[float64](q.Mesh.NX, 1)[0]
	return func(x, y int) multigrid.Point {
		s, at := q.stencil(y), x+1
		scaler.scale(y, nil, h)
		return multigrid.Point{C: s.c[at], E: s.e[at], S: s.s[at], SE: s.se[at], SW: s.sw[at], In: h[x], Out: h[x]}
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
		first, end := a.Around(x)
		first = max(0, first)
		c.first[x] = int32(first)
		for k := range min(end, fine.NX) - first {
			c.taps[k][x] = a.Weight(x, first+k)
		}
	}
	return c
}
