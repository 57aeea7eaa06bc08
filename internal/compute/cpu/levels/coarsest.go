package levels

import (
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
