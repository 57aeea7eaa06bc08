package problem

import (
	"sync/atomic"

	"jacobi/internal/compute/results"
	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// faces are the coefficients of the faces between the points of a row and their neighbours in the next column and in
// the row below; 0 where there is none. Two rows of equations have the faces between them in common.
type faces struct {
	east, south    []float64
	alongX, alongY []float64 // the same divided by hx^2 and by hy^2, times r with grid.axis
	// liftX and liftY are added to the step of the field from a point to its neighbour, where the edge of a fixed area
	// has another value than its point; nil for none.
	liftX, liftY []float64
	pinX, pinY   []*results.Pin // fixed areas between the points of faces, which have no coefficient then; nil for none
}

// none returns faces of which none conducts, of as many points.
func (f *faces) none() *faces { return &faces{south: make([]float64, len(f.south))} }

// faces returns those of row iy, which is canonical. Below a Neumann wall lies the mirror row.
func (p *rows) faces(iy int) (*faces, error) {
	if _, inside := p.between(iy + 1); inside && p.grounds.of(iy+1) == p.grounds.of(iy) {
		iy = p.grounds.of(iy)
	}
	if !p.faced.has(iy) {
		p.row = -1 // the memory of faces of the equations may be used again
	}
	return p.faced.at(iy, &p.idle.faced, p.newFaces)
}

// newFaces works out a row.
func (p *rows) newFaces(iy int, f *faces) error {
	here, err := p.material(iy)
	if err != nil {
		return err
	}
	n := p.mesh.NX
	f.east, f.south, f.alongX, f.alongY = sized(f.east, n), sized(f.south, n), sized(f.alongX, n), sized(f.alongY, n)
	here.toNext(f.east)
	if f.liftX, f.pinX, err = p.areaFaces(iy, true, here, nil, f.east); err != nil {
		return err
	}
	rowmath.Quotients(f.alongX, f.east, float64(p.numbers.hx*p.numbers.hx))
	p.spin(iy, 0.5, 0, f.alongX)
	if iy+1 == p.mesh.NY && p.mesh.Walls.Bottom != solver.Neumann {
		clear(f.south)
		clear(f.alongY)
		f.liftY, f.pinY = nil, nil
		return nil
	}
	below, err := p.beside(iy+1, iy-1)
	if err != nil {
		return err
	}
	here.toRow(below, f.south)
	mirror := iy+1 == p.mesh.NY
	if mirror {
		iy, here, below = iy-1, below, here
	}
	if f.liftY, f.pinY, err = p.areaFaces(iy, false, here, below, f.south); err != nil {
		return err
	}
	for ix := range f.liftY {
		if mirror {
			f.liftY[ix] = -f.liftY[ix]
		}
	}
	if mirror {
		f.pinY = mirrored(f.pinY)
	}
	rowmath.Quotients(f.alongY, f.south, float64(p.numbers.hy*p.numbers.hy))
	p.spin(iy, 0, 0.5, f.alongY)
	return nil
}

// areaFaces works out the faces of row iy that the edges of areas cross, to the next column, or else to the next row,
// and returns the lifts of their steps and the areas that lie in them.
func (p *Problem) areaFaces(iy int, x bool, here, below *material, dst []float64) (lifts []float64,
	pins []*results.Pin, err error) {
	if p.coefficient.covers() && !p.coefficient.constant() {
		if err := p.jumpingFaces(iy, x, dst); err != nil {
			return nil, nil, err
		}
	}
	if here.fixed == nil || !p.fixed.covers() {
		return nil, nil, nil
	}
	next, row := 0, 2*iy
	if x {
		next, below, row = 1, here, row+1
	}
	lo, hi := p.columnsOfFaces(x)
	list, err := p.crossings.of(row, lo, hi, p.mesh.NX, func(int, int) (list []crossing, err error) {
		if list, err = p.cutFaces(iy, x, here, below, dst); err == nil {
			list, err = p.pinFaces(iy, x, here, below, list)
		}
		return list, err
	})
	for ix := max(lo, min(here.first, below.first)-next); ix < min(hi, here.end, below.end); ix++ {
		if here.fixed[ix] && below.fixed[ix+next] {
			dst[ix] = 0 // it lies within the area
		}
	}
	for _, c := range list {
		dst[c.ix] = c.v
		if c.lift != 0 {
			lifts = sized(lifts, len(dst))
			lifts[c.ix] = c.lift
		}
		if c.pin != nil {
			pins = sized(pins, len(dst))
			pins[c.ix] = c.pin
		}
	}
	if wrapFaces(p, x, dst); lifts != nil {
		wrapFaces(p, x, lifts)
	}
	if pins != nil {
		wrapFaces(p, x, pins)
	}
	return lifts, pins, err
}

// above returns the faces between row iy and the row above it: those of that row, or the mirrored ones of row iy.
func (p *rows) above(iy int) (*faces, error) {
	if iy > 0 {
		iy, _ = p.mesh.Canonical(iy - 1)
	}
	return p.faces(iy)
}

// columnsOfFaces returns the columns from which faces lead to the next column, or else to the next row: without the
// copies of periodic ones.
func (p *Problem) columnsOfFaces(x bool) (lo, hi int) {
	switch {
	case p.mesh.PeriodicColumns():
		return 1, p.mesh.NX - 1
	case x:
		return 0, p.mesh.NX - 1
	}
	return 0, p.mesh.NX
}

// wrapFaces copies faces of periodic columns, or what belongs to them.
func wrapFaces[T any](p *Problem, x bool, dst []T) {
	n := len(dst)
	if !p.mesh.PeriodicColumns() {
		return
	}
	dst[0] = dst[n-2]
	if !x {
		dst[n-1] = dst[1]
	}
}

// strip returns the strips of the faces of row iy from columns [lo, hi), to the next column or else to the next row.
func (p *Problem) strip(iy int, x bool, lo, hi int) box {
	if x {
		low, high := around(iy, p.mesh.NY, p.mesh.PeriodicRows())
		return box{float64(lo), float64(hi), low, high}
	}
	left, _ := around(lo, p.mesh.NX, p.mesh.PeriodicColumns())
	_, right := around(hi-1, p.mesh.NX, p.mesh.PeriodicColumns())
	return box{left, right, float64(iy), float64(iy + 1)}
}

// squares returns from where to where the squares of a point and the next one reach, in its row or else in its column.
func (p *Problem) squares(iy, ix int, x bool) (before, after float64) {
	i, n, periodic := ix, p.mesh.NX, p.mesh.PeriodicColumns()
	if !x {
		i, n, periodic = iy, p.mesh.NY, p.mesh.PeriodicRows()
	}
	before, _ = around(i, n, periodic)
	_, after = around(i+1, n, periodic)
	return before, after
}

// mostEdges bounds the places with edges that a cache remembers. They are worked out by several phases of a run.
const mostEdges = 1 << 20

// edgeCache are what edges make of faces or squares, by row. Cores take no lock.
type edgeCache[T any] struct {
	rows  []atomic.Pointer[[]T]
	count atomic.Int64
}

// newEdgeCache returns one of a number of rows.
func newEdgeCache[T any](rows int) *edgeCache[T] {
	return &edgeCache[T]{rows: make([]atomic.Pointer[[]T], rows)}
}

// edged is the value of the face or the square at a column.
type edged struct {
	ix int
	v  float64
}

// crossing is a face that the edge of a fixed area crosses.
type crossing struct {
	edged
	lift float64      // is added to the step of the field
	pin  *results.Pin // the area that lies in the face; nil for none
}

// of returns those of a row. work finds what is in columns [lo, hi), and in all n columns while there is room for that.
func (e *edgeCache[T]) of(row, lo, hi, n int, work func(lo, hi int) ([]T, error)) ([]T, error) {
	if list := e.rows[row].Load(); list != nil {
		return *list, nil
	}
	if e.count.Load()+int64(n) > mostEdges {
		return work(lo, hi)
	}
	list, err := work(0, n)
	if err == nil && e.rows[row].CompareAndSwap(nil, &list) {
		e.count.Add(int64(len(list)))
	}
	return list, err
}

// jumpingFaces works out the faces of row iy where the coefficient jumps: to the next column, or else to the next row.
func (p *Problem) jumpingFaces(iy int, x bool, dst []float64) error {
	if cells := cellsOf(p.coefficient.node); cells != nil {
		return p.cellFaces(cells, iy, x, dst)
	}
	row := 2 * iy
	if x {
		row++
	}
	lo, hi := p.columnsOfFaces(x)
	list, err := p.edges.of(row, lo, hi, p.mesh.NX, func(int, int) (list []edged, err error) {
		a := p.newArea()
		a.direct(x)
		region := func(lo, hi int) box { return p.strip(iy, x, lo, hi) }
		err = p.coefficient.node.eachJump(lo, hi, region, func(n node, ix int) error {
			b := region(ix, ix+1)
			a.take(n)
			if !x {
				b = box{b.top, b.bottom, b.left, b.right}
			}
			a.whole(b.left, b.right, b.top, b.bottom)
			before, after := p.squares(iy, ix, x)
			c, err := a.conductance(b.left, b.right, b.top, b.bottom, before, after)
			list = append(list, edged{ix, c})
			return err
		})
		return list, err
	})
	for _, e := range list {
		dst[e.ix] = e.v
	}
	wrapFaces(p, x, dst)
	return err
}
