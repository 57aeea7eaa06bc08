package reference

import (
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// stencil is the equations of a level of a weighted operator: C and the couplings S of every point, which
// docs/numerics.md defines. Points are numbered as in the mesh; those beyond it go on where it is periodic, and have 0
// elsewhere.
type stencil struct {
	mesh solver.Mesh
	x, y multigrid.Halving // to the next coarser level
	// centre is C, and east, south, southEast and southWest are the couplings to these neighbours.
	centre, east, south, southEast, southWest []float64
	p                                         [2][2][]float64 // by south and east of the coarse point: P
	g, h                                      []float64
}

func newStencil(l multigrid.Level) *stencil {
	s := &stencil{mesh: l.Mesh, x: l.HalveX, y: l.HalveY}
	for _, a := range []*[]float64{&s.centre, &s.east, &s.south, &s.southEast, &s.southWest, &s.p[0][0], &s.p[0][1],
		&s.p[1][0], &s.p[1][1], &s.g, &s.h} {
		*a = make([]float64, l.Mesh.NX*l.Mesh.NY)
	}
	return s
}

// index returns the place of a point in an array; ok is false unless it is a point that sweeps might update.
func (s *stencil) index(y, x int) (i int, ok bool) {
	m := s.mesh
	if m.PeriodicColumns() {
		x = 1 + ((x-1)%(m.NX-2)+m.NX-2)%(m.NX-2)
	}
	y, ok = m.Canonical(y)
	lo, hi := m.InteriorColumns()
	rows := m.Interior()
	return y*m.NX + x, ok && y >= rows.Lo && y < rows.Hi && x >= lo && x < hi
}

// at returns the value of a point.
func (s *stencil) at(a []float64, y, x int) float64 {
	if i, ok := s.index(y, x); ok {
		return a[i]
	}
	return 0
}

// held returns the value of a point, which may lie on a wall.
func (s *stencil) held(a []float64, y, x int) float64 {
	if i, ok := s.index(y, x); ok || x >= 0 && x < s.mesh.NX && i >= 0 && i < len(a) {
		return a[i]
	}
	return 0
}

// set sets the value of an interior point.
func (s *stencil) set(a []float64, y, x int, v float64) {
	i, _ := s.index(y, x)
	a[i] = v
}

// each calls do for the interior points.
func (s *stencil) each(do func(y, x int)) {
	rows := s.mesh.Interior()
	lo, hi := s.mesh.InteriorColumns()
	eachRow(rows.Rows(), func(i int) {
		for x := lo; x < hi; x++ {
			do(rows.Lo+i, x)
		}
	})
}

// around are the neighbours of a point, in the order of a sweep.
var around = [...][2]int{{0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}}

// coupling returns S from a point to the one dy rows below it and dx columns behind it, which need not be unknowns.
func (s *stencil) coupling(y, x, dy, dx int) float64 {
	switch {
	case dy < 0 || dy == 0 && dx < 0:
		return s.coupling(y+dy, x+dx, -dy, -dx)
	case dy == 0:
		return s.held(s.east, y, x)
	case dx < 0:
		return s.held(s.southWest, y, x)
	case dx == 0:
		return s.held(s.south, y, x)
	}
	return s.held(s.southEast, y, x)
}

// interpolate computes P.
func (s *stencil) interpolate() {
	between := func(y, x int) (inY, inX bool) {
		_, inX = s.x.At(x)
		_, inY = s.y.At(y)
		return inY, inX
	}
	for _, both := range []bool{false, true} { // points between columns and rows need the others
		s.each(func(y, x int) {
			inY, inX := between(y, x)
			if both != (inY && inX) || !(s.at(s.centre, y, x) > 0) {
				return
			}
			switch {
			case both:
				s.cross(y, x)
			case inX:
				s.line(y, x, 0, 1)
			case inY:
				s.line(y, x, 1, 0)
			default:
				s.set(s.p[0][0], y, x, 1)
			}
		})
	}
}

// line computes P of a point that lies between coarse points in one direction.
func (s *stencil) line(y, x, dy, dx int) {
	c := func(dy, dx int) float64 { return s.coupling(y, x, dy, dx) }
	before := math.Abs((c(-dy-dx, -dx-dy) + c(-dy, -dx)) + c(dx-dy, dy-dx))
	after := math.Abs((c(dy-dx, dx-dy) + c(dy, dx)) + c(dy+dx, dx+dy))
	total := (before + after) + max(0, s.excess(y, x)-min(s.excess(y-dy, x-dx), s.excess(y+dy, x+dx)))
	if total == 0 {
		return
	}
	if s.at(s.centre, y-dy, x-dx) > 0 {
		s.set(s.p[0][0], y, x, before/total)
	}
	if s.at(s.centre, y+dy, x+dx) > 0 {
		s.set(s.p[dy][dx], y, x, after/total)
	}
}

// excess returns what C exceeds the sum of the couplings by; 0 at a point that is not an unknown.
func (s *stencil) excess(y, x int) float64 {
	c := func(dy, dx int) float64 { return s.coupling(y, x, dy, dx) }
	sum := ((c(0, -1) + c(0, 1)) + (c(-1, 0) + c(1, 0))) + ((c(-1, -1) + c(-1, 1)) + (c(1, -1) + c(1, 1)))
	return max(0, s.at(s.centre, y, x)-sum)
}

// cross computes P of a point that lies between columns and rows.
func (s *stencil) cross(y, x int) {
	for i := range 4 {
		down, right := i/2, i%2
		dy, dx := 2*down-1, 2*right-1
		if !(s.at(s.centre, y+dy, x+dx) > 0) {
			continue
		}
		v := math.FMA(s.coupling(y, x, dy, 0), s.at(s.p[0][right], y+dy, x), s.coupling(y, x, dy, dx))
		v = math.FMA(s.coupling(y, x, 0, dx), s.at(s.p[down][0], y, x+dx), v)
		s.set(s.p[down][right], y, x, v/s.at(s.centre, y, x))
	}
}

// towards returns the P of a point for coarse point (row, column), or 0; ok tells whether it lies there or next to it.
func (s *stencil) towards(p [2][2][]float64, y, x, row, column int) (v float64, ok bool) {
	fromRow, inY := s.y.At(y)
	fromColumn, inX := s.x.At(x)
	down, right := row-fromRow, column-fromColumn
	if down < 0 || right < 0 || down > 1 || right > 1 || down == 1 && !inY || right == 1 && !inX {
		return 0, false
	}
	return s.at(p[down][right], y, x), true
}

// minimal is the least C of a coarse point that is an unknown.
const minimal = 0x1p-240

// galerkin computes the stencil of the next coarser level.
func (s *stencil) galerkin(c *stencil) {
	c.each(func(row, column int) {
		centre := s.product(row, column, row, column)
		if !(centre >= minimal) {
			centre = 0
		}
		c.set(c.centre, row, column, centre)
		c.set(c.east, row, column, 0-s.product(row, column, row, column+1))
		c.set(c.south, row, column, 0-s.product(row, column, row+1, column))
		c.set(c.southEast, row, column, 0-s.product(row, column, row+1, column+1))
		c.set(c.southWest, row, column, 0-s.product(row, column, row+1, column-1))
	})
}

// product returns A of two coarse points.
func (s *stencil) product(row, column, toRow, toColumn int) float64 {
	sum := 0.0
	top, bottom := s.y.Around(row)
	left, right := s.x.Around(column)
	for y := top; y < bottom; y++ {
		for x := left; x < right; x++ {
			if p, ok := s.towards(s.p, y, x, row, column); ok {
				sum = math.FMA(p, s.timesP(y, x, toRow, toColumn), sum)
			}
		}
	}
	return sum
}

// timesP returns AP of a point and a coarse point.
func (s *stencil) timesP(y, x, row, column int) float64 {
	sum := 0.0
	for dy := -1; dy <= 1; dy++ {
		for dx := -1; dx <= 1; dx++ {
			p, ok := s.towards(s.p, y+dy, x+dx, row, column)
			switch {
			case !ok:
			case dy == 0 && dx == 0:
				sum = math.FMA(s.at(s.centre, y, x), p, sum)
			default:
				sum = math.FMA(-s.coupling(y, x, dy, dx), p, sum)
			}
		}
	}
	return sum
}

// scale computes g and h.
func (s *stencil) scale() {
	root := make([]float64, len(s.centre))
	s.each(func(y, x int) {
		if c := s.at(s.centre, y, x); c > 0 {
			s.set(root, y, x, 1/math.Sqrt(c))
		}
	})
	s.each(func(y, x int) {
		c, sum := s.at(s.centre, y, x), 0.0
		if !(c > 0) {
			return
		}
		for _, d := range around {
			sum = math.FMA(math.Abs(s.coupling(y, x, d[0], d[1])),
				s.at(root, y, x)*s.at(root, y+d[0], x+d[1]), sum)
		}
		h := math.Sqrt(c * max(1, sum))
		s.set(s.h, y, x, h)
		s.set(s.g, y, x, 1/h)
	})
}
