package problem

import (
	"fmt"
	"math"
	"slices"

	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// stencil is the equations of the points of a row: D u = (gW u_W + gE u_E) + (gN u_N + gS u_S) + rhs, divided by D
// (docs/numerics.md). The g are the faces over hx^2 or hy^2. With grid.axis all are times r.
type stencil struct {
	*faces             // to the next column and row
	above    *faces    // their south ones are those to the row above; nil on fixed walls
	b        []float64 // rhs/D
	diagonal []float64 // D; 0 at points that no sweep updates
	free     []bool    // points that a sweep updates; they are kept apart
	hold     []float64 // the part of D that the screening, Robin walls and areas in faces contribute, divided by D
	held     bool      // hold is not 0 everywhere
}

// stencil returns the stencil of row iy, which is canonical. It stays until faces, another stencil or a row of an
// assembly are asked for.
func (p *rows) stencil(iy int) (st *stencil, err error) {
	iy = p.stencils.of(iy)
	st = &p.equations
	if st.free, err = p.free(iy); err != nil || p.row == iy {
		return st, err
	}
	n := p.mesh.NX
	st.b, st.diagonal, st.hold = sized(st.b, n), sized(st.diagonal, n), sized(st.hold, n)
	if st.held {
		clear(st.hold)
	}
	p.row, st.above, st.held = -1, nil, false
	if p.fixedWallRow(iy) {
		clear(st.b)
		clear(st.diagonal)
		st.faces, err = p.faces(iy)
	} else if st.faces, err = p.faces(iy); err == nil {
		if st.above, err = p.above(iy); err == nil {
			err = p.equationsOf(iy, st)
		}
	}
	if err == nil {
		p.row = iy
	}
	return st, err
}

// free returns which points of row iy, which is canonical, a sweep updates.
func (p *rows) free(iy int) ([]bool, error) {
	iy = p.stencils.of(iy)
	if p.fixed.none() && !p.porous && !p.fixedWallRow(iy) { // all rows are the same
		iy = p.mesh.Interior().Lo
	}
	free, err := p.frees.at(iy, &p.idle.frees, p.newFree)
	return *free, err
}

func (p *rows) newFree(iy int, to *[]bool) error {
	free := sized(*to, p.mesh.NX)
	*to = free
	clear(free)
	if p.fixedWallRow(iy) {
		return nil
	}
	lo, hi := p.mesh.InteriorColumns()
	rowmath.Fill(free[lo:hi], true)
	if !p.fixed.none() {
		here, err := p.material(iy)
		if err != nil {
			return err
		}
		for ix := max(lo, here.first); ix < min(hi, here.end); ix++ {
			free[ix] = !here.fixed[ix]
		}
	}
	if p.porous {
		outside, err := p.outsideMarks(iy)
		for ix, out := range outside {
			free[ix] = free[ix] && !out
		}
		return err
	}
	return nil
}

// beside returns the row iy beside another one; beyond a Neumann wall that is the mirror row.
func (p *rows) beside(iy, mirror int) (*material, error) {
	if iy < 0 || iy >= p.mesh.NY {
		iy = mirror
	}
	iy, _ = p.mesh.Canonical(iy)
	return p.material(iy)
}

// equationsOf computes the diagonals and the sources of the free points of row iy.
func (p *rows) equationsOf(iy int, st *stencil) error {
	here, err := p.material(iy)
	if err != nil {
		return err
	}
	robin := slices.ContainsFunc(p.sides[:], func(s side) bool { return s.robin() })
	st.held = st.lifted() || st.pins() || robin || p.turn.on || !p.screening.zero()
	if st.held {
		clear(st.diagonal) // to which Robin walls add
	}
	if err := p.rightHandSideWithWalls(iy, st, here); err != nil {
		return err
	}
	if !p.screening.zero() {
		if err := p.values(p.screening, iy, st.hold); err != nil {
			return err
		}
		for ix, k2 := range st.hold { // the mean over a square may hide it
			if st.free[ix] && here.a[ix] != 0 && !(k2 >= 0) {
				return p.refuse(p.screening, iy, ix, fmt.Sprintf("%v; %s", k2, screeningAllowed))
			}
		}
		if err := p.overSquares(p.absorption, iy, 0, st.hold); err != nil {
			return err
		}
	}
	if st.held {
		err = p.addHolds(iy, st)
	}
	if err == nil {
		err = p.divideBySums(iy, st)
	}
	return err
}

// rightHandSideWithWalls sets st.b of row iy to rhs, and adds to st.diagonal what Robin walls contribute to D.
func (p *rows) rightHandSideWithWalls(iy int, st *stencil, here *material) error {
	lo, hi := p.mesh.InteriorColumns()
	clear(st.b[:lo])
	clear(st.b[hi:])
	if err := p.rightHandSide(p.span.at(iy, lo), st.b[lo:hi]); err != nil {
		return err
	}
	p.spin(iy, 0, 0, st.b)
	return p.wallTerms(iy, st, here)
}

// addHolds sets st.hold of the free points of row iy to the part of D that belongs to no neighbour: the screening that
// is there, what Robin walls have left in st.diagonal, and fixed areas in faces. Their values, and lifts, add to rhs.
func (p *rows) addHolds(iy int, st *stencil) error {
	last, lifted, pinned := p.mesh.NX-1, st.lifted(), st.pins()
	for ix, free := range st.free {
		if !free {
			continue
		}
		k2 := st.hold[ix]
		if !(k2 >= 0) || math.IsInf(k2, 1) {
			return p.refuse(p.screening, iy, ix, fmt.Sprintf("%v; %s", k2, screeningAllowed))
		}
		if lifted {
			st.b[ix] += p.lifts(st, iy, ix, max(ix-1, 0), min(ix, last-1))
		}
		if p.turn.on {
			k2 = float64(k2 * p.turn.radius(p.middle(iy, ix, 0, 0)))
		}
		st.hold[ix] = k2 + st.diagonal[ix]
		if pinned {
			p.eachPin(st, iy, ix, func(_ int, c, h2, u float64) {
				st.hold[ix] += float64(c / h2)
				st.b[ix] += float64(float64(c/h2) * u)
			})
		}
	}
	return nil
}

// divideBySums sets D of the free points of row iy to the sum of all that leads from them, and divides by it. A point
// from which nothing leads lies alone among points without material. It is left out, or refused for what is in b.
func (p *rows) divideBySums(iy int, st *stencil) error {
	last, d, b := p.mesh.NX-1, st.diagonal, st.b
	rowmath.Centres(d[1:last], st.alongX[:last], st.above.alongY[1:last], st.alongY[1:last])
	for _, end := range [2]struct{ ix, face int }{{0, 0}, {last, last - 1}} {
		w, ix := st.alongX[end.face], end.ix
		d[ix] = float64((w + w) + (st.above.alongY[ix] + st.alongY[ix]))
	}
	for ix := p.endOfFree(st, 0); ix <= last; ix = p.endOfFree(st, ix+1) {
		d[ix], b[ix], st.hold[ix] = 0, 0, 0
	}
	for ix, hold := range st.hold {
		if !st.held {
			break
		}
		if hold != 0 {
			d[ix] += hold
			st.hold[ix] = hold / d[ix]
		}
	}
	if !p.porous {
		rowmath.Ratios(b, b, d)
		most := math.MaxFloat64
		if p.mesh.DType == solver.Float32 {
			most = math.MaxFloat32
		}
		if rowmath.Within(b, -most, most) == len(b) && rowmath.Within(d, 0, math.MaxFloat64) == len(d) {
			return nil
		}
	}
	for ix, v := range b {
		if p.porous && d[ix] != 0 {
			v /= d[ix]
			b[ix] = v
		}
		if r := p.round(v); r-r+(d[ix]-d[ix]) != 0 && d[ix] != 0 { // one is NaN or infinite
			return p.tooLarge(iy, ix)
		}
	}
	return nil
}

// endOfFree returns the first column from ix on whose point no sweep updates, or the number of columns.
func (p *Problem) endOfFree(st *stencil, ix int) int {
	if ix < len(st.free) && st.free[ix] && p.fixed.none() && !p.porous {
		_, end := p.mesh.InteriorColumns()
		return end
	}
	for ix < len(st.free) && st.free[ix] {
		ix++
	}
	return ix
}

// lifted reports whether there are lifts of steps beside the points of a row.
func (st *stencil) lifted() bool { return st.liftX != nil || st.liftY != nil || st.above.liftY != nil }

// lifts returns what the lifts of steps add to the right-hand side of the point at column ix of row iy, whose faces are
// those to the next columns of west and east.
func (p *Problem) lifts(st *stencil, iy, ix, west, east int) (sum float64) {
	lift := func(lifts, along []float64, at int, sign float64) {
		if lifts != nil {
			sum += float64(sign * float64(along[at]*lifts[at]))
		}
	}
	mirror := func(on bool) float64 { return 1 - 2*truth(on) }
	lift(st.liftX, st.alongX, west, -mirror(ix == 0))
	lift(st.liftX, st.alongX, east, mirror(ix == p.mesh.NX-1))
	lift(st.above.liftY, st.above.alongY, ix, -mirror(iy == 0))
	lift(st.liftY, st.alongY, ix, 1)
	return sum
}

// weights writes the weights of the neighbours in a direction of the points from column col on to dst: gW/D, gE/D, gN/D
// or gS/D. Beyond a Neumann wall they are those of the mirror column. Columns that no sweep updates have 0.
func (st *stencil) weights(k solver.Value, col int, dst []float64) {
	d, last := st.diagonal[col:][:len(dst)], len(st.diagonal)-1
	switch {
	case st.above == nil:
		clear(dst)
	case k == solver.North:
		rowmath.Ratios(dst, st.above.alongY[col:], d)
	case k == solver.South:
		rowmath.Ratios(dst, st.alongY[col:], d)
	case k == solver.West && col > 0:
		rowmath.Ratios(dst, st.alongX[col-1:], d)
	case k == solver.West:
		rowmath.Ratios(dst[:1], st.alongX, d)
		rowmath.Ratios(dst[1:], st.alongX, d[1:])
	case col+len(dst) <= last:
		rowmath.Ratios(dst, st.alongX[col:], d)
	default:
		n := len(dst) - 1
		rowmath.Ratios(dst[:n], st.alongX[col:], d)
		rowmath.Ratios(dst[n:], st.alongX[last-1:], d[n:])
	}
}

// barrier returns the least coefficient above 0 of the faces of free points, infinite without one, and whether such a
// point has a face without a coefficient.
func (p *Problem) barrier(iy int, st *stencil) (weakest float64, open bool) {
	weakest = math.Inf(1)
	take := func(faces ...float64) {
		least, zero := rowmath.Least(faces)
		weakest, open = min(weakest, least), open || zero
	}
	last := len(st.free) - 1
	if st.pins() {
		for ix, free := range st.free {
			if free {
				sides := [4]float64{st.east[max(ix-1, 0)], st.east[min(ix, last-1)], st.above.south[ix], st.south[ix]}
				p.eachPin(st, iy, ix, func(k int, c, _, _ float64) { sides[k] = c })
				take(sides[:]...)
			}
		}
		return weakest, open
	}
	for lo := 0; lo <= last; lo++ { // whole runs of free points
		if !st.free[lo] {
			continue
		}
		first := lo
		lo = p.endOfFree(st, lo)
		take(st.east[max(first-1, 0):min(lo, last)]...)
		take(st.above.south[first:lo]...)
		take(st.south[first:lo]...)
	}
	return weakest, open
}

// wallTerms adds what Neumann and Robin walls contribute to rhs in st.b, and what Robin walls contribute to D in
// st.diagonal.
func (p *Problem) wallTerms(iy int, st *stencil, here *material) error {
	s := &span{}
	for k := range p.sides {
		side, spacing := &p.sides[k], p.spacing(k)
		for ix, end := p.columnsOn(k, iy); ix < end && side.wall == solver.Neumann; ix++ {
			if !st.free[ix] {
				continue
			}
			if g := side.node.at(s, iy, ix); g-g != 0 {
				return p.finite(side.part, iy, ix, g)
			}
			g := p.inflow(k, iy, ix, here.a[ix])
			r := p.wallRadius(k, iy, ix)
			st.b[ix] += float64(float64(2*g) / spacing * r)
			if !side.robin() {
				continue
			}
			h := p.alongWall(side.hold, side.transfer, k, iy, ix)
			least := h
			if here.a[ix] != 0 { // the mean along the wall may hide it
				least = min(h, side.transfer.node.at(s, iy, ix))
			}
			if !(least >= 0) || math.IsInf(h, 1) {
				return p.refuse(side.transfer, iy, ix, fmt.Sprintf("%v; %s", least, transferAllowed))
			}
			st.diagonal[ix] += float64(float64(2*h) / spacing * r)
		}
	}
	return nil
}

// heldIn returns which free points of row iy have a neighbour which keeps a value, or an area that does beside them.
func (p *rows) heldIn(iy int, st *stencil, here *material) ([]bool, error) {
	north, err := p.beside(iy-1, iy+1)
	if err != nil {
		return nil, err
	}
	south, err := p.beside(iy+1, iy-1)
	if err != nil {
		return nil, err
	}
	held := make([]bool, len(st.free))
	keeps := func(m *material, row, ix int) bool {
		return m.fixed != nil && m.fixed[ix] || p.wallColumn(ix) || p.wallRow(row)
	}
	for ix := 0; ix < len(held) && st.pins(); ix++ {
		if st.free[ix] {
			p.eachPin(st, iy, ix, func(int, float64, float64, float64) { held[ix] = true })
		}
	}
	last, inside := p.mesh.NX-1, !p.wallRow(iy-1) && !p.wallRow(iy+1)
	first, step := 0, 1
	if p.fixed.none() && inside { // columns beside walls are left
		first, step = 1, max(1, last-2)
	}
	for ix := first; ix <= last; ix += step {
		if !st.free[ix] || inside && here.fixed != nil && ix > 1 && ix < last-1 &&
			!(here.fixed[ix-1] || here.fixed[ix+1] || north.fixed[ix] || south.fixed[ix]) {
			continue
		}
		held[ix] = held[ix] || ix > 0 && st.east[ix-1] > 0 && keeps(here, iy, ix-1) ||
			ix < last && st.east[ix] > 0 && keeps(here, iy, ix+1) ||
			st.above.south[ix] > 0 && keeps(north, iy-1, ix) || st.south[ix] > 0 && keeps(south, iy+1, ix)
	}
	return held, nil
}

// wallRow reports whether row iy is that of a fixed wall. Rows beyond the mesh are none.
func (p *Problem) wallRow(iy int) bool {
	return iy == 0 && p.sides[north].wall == solver.Dirichlet ||
		iy == p.mesh.NY-1 && p.sides[south].wall == solver.Dirichlet
}
