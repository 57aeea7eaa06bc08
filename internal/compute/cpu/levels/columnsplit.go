package levels

import (
	"math"
	"unsafe"

	"jacobi/solver"
)

// columnSplit does the work of a galerkin by functions for rows. For these a row is split into the values of points on
// coarse columns and those between, so that a coarse column and the points around it have the same index.
type columnSplit struct {
	*prolongation
	functions *functions
	columns   int             // coarse ones
	couplings newest[[5]pair] // C, E, S, SE and SW
	p         newest[[2][2]pair]
	ap        [4]product
	last      int // the product that was computed last
}

// pair is a row, split.
type pair struct{ on, between []float64 }

// product is AP of row y and a coarse row: of points on coarse columns for the one before, their own one and the one
// behind, and of points between for the one before and the one behind.
type product struct {
	y, coarse int
	rows      [5][]float64
}

// newColumnSplit returns nil if there are no functions for the columns of p, or if a point on a coarse column has an
// odd index. One on a fixed wall may have, as its P and AP are 0.
func newColumnSplit(e engine, p *prolongation) *columnSplit {
	x, columns := p.HalveX, p.HalveX.Coarse+1
	f := of[float64](&e, columns)
	if f == nil || x.Periodic || x.Coarse == x.Fine {
		return nil
	}
	if x.Fine%2 != 0 && p.Mesh.Walls.Right != solver.Dirichlet {
		return nil
	}
	c := &columnSplit{prolongation: p, functions: f, columns: columns}
	newPair := func() pair {
		rows := newRows[float64](columns, 2)
		return pair{rows[0], rows[1]}
	}
	c.couplings.fill(func() [5]pair { return [5]pair{newPair(), newPair(), newPair(), newPair(), newPair()} })
	c.p.fill(func() [2][2]pair { return [2][2]pair{{newPair(), newPair()}, {newPair(), newPair()}} })
	for i := range c.ap {
		c.ap[i].y = math.MinInt
		copy(c.ap[i].rows[:], newRows[float64](columns, len(c.ap[i].rows)))
	}
	return c
}

// split splits a row.
func (c *columnSplit) split(to pair, row []float64) {
	a := c.take(address(to.on, 0), address(row, 0), nil, c.columns, 0)
	a.dst2 = address(to.between, 0)
	c.functions.split(a)
}

// row returns the couplings of row y.
func (c *columnSplit) row(y int) [5]pair {
	rows, known := c.couplings.at(y)
	if known {
		return rows
	}
	s := c.stencil(y)
	for i, r := range [][]float64{s.c, s.e, s.s, s.se, s.sw} {
		if i < 3 || !c.finest {
			c.split(rows[i], r[1:])
		}
	}
	return rows
}

// at returns P of row y.
func (c *columnSplit) at(y int) [2][2]pair {
	p, known := c.p.at(y)
	if known {
		return p
	}
	for down, rows := range c.prolongation.at(y) {
		for right, r := range rows {
			c.split(p[down][right], r)
		}
	}
	return p
}

// times returns AP of row y and a coarse row.
func (c *columnSplit) times(y, row int) *product {
	for i := range c.ap {
		if c.ap[i].y == y && c.ap[i].coarse == row {
			return &c.ap[i]
		}
	}
	c.last = (c.last + 1) % len(c.ap)
	ap := &c.ap[c.last]
	ap.y, ap.coarse = y, row
	for _, r := range ap.rows {
		clear(r)
	}
	for dy := -1; dy <= 1; dy++ {
		at, between := c.HalveY.At(y + dy)
		if down := row - at; down == 0 || down == 1 && between {
			c.timesP(ap, y, dy, c.at(y + dy)[down])
		}
	}
	return ap
}

// timesP adds the terms of row y+dy to AP of row y.
func (c *columnSplit) timesP(ap *product, y, dy int, p [2]pair) {
	f, a, k := c.functions.timesPBeside, &c.args, c.row(y)
	var west, centre, east pair
	westShift, eastShift := 0, 0 // of points on and between coarse columns
	switch dy {
	case -1:
		north := c.row(y - 1)
		west, centre, east = pair{north[3].between, north[3].on}, north[2], pair{north[4].between, north[4].on}
		westShift, eastShift = -1, 1
	case 0:
		f = c.functions.timesPOwn
		west, centre, east = pair{k[1].between, k[1].on}, k[0], k[1]
		westShift = -1
	case 1:
		west, centre, east = k[4], k[2], k[3]
	}
	if dy != 0 && c.finest {
		f = c.functions.timesPStraight
	}
	a.n = c.columns
	a.rows = [len(a.rows)]unsafe.Pointer{address(west.on, westShift), address(centre.on, 0), address(east.on, 0),
		address(west.between, 0), address(centre.between, 0), address(east.between, eastShift), address(p[0].on, 0),
		address(p[0].between, 0), address(p[1].between, 0)}
	for i, r := range ap.rows {
		a.rows[9+i] = address(r, 0)
	}
	f(a)
}

// add adds the terms of row y, whose P for the coarse row is that of down, to the stencil of a coarse row.
func (c *columnSplit) add(dst *[5][]float64, y, row, down int) {
	own, next, p, a := c.times(y, row), c.times(y, row+1), c.at(y)[down], &c.args
	a.n = c.columns
	a.rows = [len(a.rows)]unsafe.Pointer{address(p[1].between, 0), address(p[0].on, 0), address(p[0].between, 0)}
	for i, r := range own.rows[1:] {
		a.rows[3+i] = address(r, 0)
	}
	for i, r := range next.rows {
		a.rows[7+i] = address(r, 0)
	}
	for i, r := range dst {
		a.rows[12+i] = address(r, 0)
	}
	c.functions.addAP(a)
}
