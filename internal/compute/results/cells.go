package results

import (
	"math"

	"jacobi/solver"
)

// A cell of the mesh is the rectangle between four points. The flux between a free point and one that is not crosses
// the middle between them, half a spacing before the wall or the electrode. In the quarters of cells that lie between,
// f makes flux and k2 u absorbs it. With them, and with what passes along two walls at their corner, a flux through a
// straight wall is of second order.

// segment is a part of a row of f.
type segment struct {
	iy, from int // the row, and the first column
	values   []float64
}

// segmentColumns is the number of columns of a segment: few, as walls need one column at each end.
const segmentColumns = 32

// density returns f and k2 u at a point. An f that is not finite, which no sweep has read, counts as 0.
func (t *pair) density(l line, ix int) (f, absorbed float64, err error) {
	w := &t.segments[l.iy&1]
	row, column := t.place(l.iy, ix)
	if w.iy != row || column < w.from || column >= w.from+len(w.values) {
		n := min(segmentColumns, t.mesh.NX)
		w.iy, w.from = row, min(column, t.mesh.NX-n)
		if w.values == nil {
			w.values = make([]float64, n)
		}
		if err := t.problem.RightHandSide(row, w.from, w.values); err != nil {
			return 0, 0, err
		}
	}
	f = w.values[column-w.from]
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	f = l.around(ix, f)
	k2 := t.problem.Screening()
	if l.ground != nil {
		k2 = l.screening[ix]
	}
	return f, float64(k2 * l.values[ix]), nil
}

// made returns what f makes less what k2 u absorbs in an area around a point that is not free, and adds both to the
// balance.
func (t *pair) made(l line, ix int, area float64) (float64, error) {
	f, absorbed, err := t.density(l, ix)
	t.part.Source.Add(float64(f * area))
	t.part.Absorbed.Add(-float64(absorbed * area))
	return float64((f - absorbed) * area), err
}

// held reports whether a point is not free.
func (t *Tally) held(l line, ix int) bool {
	return t.columnWall(ix, solver.Dirichlet) >= 0 || t.wallRow(l.iy) || l.label != nil && l.label[ix] >= 0
}

// cells takes f - k2 u in the quarters of cells around points that are not free from their owners' fluxes, for the
// cells between the two newest rows that have a free corner. It adds up what passes the walls beside such cells.
func (t *pair) cells() error {
	above, below := t.old, t.now
	from, to := t.facesInRow()
	inside := !t.plain && (above.label != nil || below.label != nil) || t.wallRow(above.iy) || t.wallRow(below.iy)
	var held [4]bool // of the corners of a cell, those of above first
	held[1], held[3] = t.held(above, from), t.held(below, from)
	labels := above.label != nil && below.label != nil // of a row of a wall there are none
	for ix := from; ix < to; ix++ {
		for labels && ix < to-2 && held[1] == held[3] && (above.label[ix+1] >= 0) == held[1] &&
			(below.label[ix+1] >= 0) == held[1] {
			ix++ // all four corners are free, or none is
		}
		if !inside && ix > from && ix < to-1 {
			ix = to - 1 // only walls count
			held[1], held[3] = t.held(above, ix), t.held(below, ix)
		}
		held = [4]bool{held[1], t.held(above, ix+1), held[3], t.held(below, ix+1)}
		if held == [4]bool{} || (held[0] || above.none(ix)) && (held[1] || above.none(ix+1)) &&
			(held[2] || below.none(ix)) && (held[3] || below.none(ix+1)) {
			continue // no corner is free
		}
		for i, l := range [4]line{above, above, below, below} {
			column := ix + i&1
			if !held[i] || t.areas && l.label != nil && l.label[column] >= 0 {
				continue // squares counts what is free around the points of a fixed area
			}
			var made float64
			if !t.plain {
				var err error
				if made, err = t.made(l, column, t.quarter()); err != nil {
					return err
				}
				t.owner(l, column).Add(-made)
			}
			t.passCorner(l, column, [2]line{below, above}[i/2], ix+1-i&1, made)
		}
	}
	return nil
}

// squares takes f - k2 u in the free parts of the squares around fixed points of the newest row from their regions'
// fluxes, if areas are fixed.
func (t *pair) squares() error {
	l := t.now
	if t.plain || !t.areas || l.label == nil {
		return nil
	}
	for ix := t.lo; ix < t.hi; ix++ {
		if l.label[ix] < 0 {
			continue
		}
		made, err := t.made(l, ix, t.area(l.iy, ix))
		if err != nil {
			return err
		}
		t.region(l.label[ix]).Add(-made)
	}
	return nil
}

// quarter returns the area of a quarter of a cell.
func (t *Tally) quarter() float64 { return float64(t.hx*t.hy) / 4 }

// corners divides what passes along two fixed walls near the corner between them, if it is in the two newest rows: the
// derivative through half a spacing of one wall is that along the other one.
func (t *pair) corners() error {
	w := t.mesh.Walls
	var wall int
	var end, inner line // the row of the wall, and the one beside it
	switch {
	case t.old.iy == 0 && w.Top == solver.Dirichlet:
		wall, end, inner = top, t.old, t.now
	case t.now.iy == t.mesh.NY-1 && w.Bottom == solver.Dirichlet:
		wall, end, inner = bottom, t.now, t.old
	default:
		return nil
	}
	last := t.mesh.NX - 1
	for _, side := range []struct {
		wall, ix, beside int
		condition        solver.Wall
	}{{left, 0, 1, w.Left}, {right, last, last - 1, w.Right}} {
		if side.condition != solver.Dirichlet || t.held(inner, side.beside) || inner.none(side.beside) {
			continue
		}
		moved, made := 0.0, 0.0
		move := func(flux float64) {
			moved += flux
			t.part.Flux[side.wall].Add(flux)
			t.part.Flux[wall].Add(-flux)
		}
		u := end.values[side.ix]
		along, across := end.toEast(min(side.ix, side.beside)), t.now.toNorth(side.ix)
		move(float64(along * float64(t.hy/(2*t.hx)*(u-end.values[side.beside]))))
		move(float64(across * float64(t.hx/(2*t.hy)*(inner.values[side.ix]-u))))
		if !t.plain {
			f, absorbed, err := t.density(end, side.ix)
			if err != nil {
				return err
			}
			made = float64((f - absorbed) * t.quarter())
			move(-float64(made / 2)) // cells counts the quarter as the wall's of the row
		}
		t.pass(side.wall, moved)
		t.pass(wall, -moved-made)
	}
	return nil
}
