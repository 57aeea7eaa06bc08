package levels

import (
	"unsafe"

	"jacobi/internal/base/huge"
	"jacobi/internal/compute/cpu/kernel"
)

// couplings are the numbers of the points of a level of a weighted operator. Those of level 0 are float64 and have no
// diagonal neighbours; those of all others are scaled (docs/numerics.md).
type couplings[F float] struct {
	diagonal             array[F] // 1/C on level 0, q on all others; 0 at points that are not unknowns
	centre               array[F] // C, on level 0 only
	east, south          array[F]
	southEast, southWest array[F] // without rows on level 0
	zero                 []F      // a row beyond the level
	lo                   int
	rows                 []points[F] // of each row from lo on: to put them together takes as long as a short sweep
}

func newCouplings[F float](l *level[F], diagonals bool) *couplings[F] {
	c := &couplings[F]{zero: newRows[F](l.Mesh.NX, 1)[0]}
	arrays := []*array[F]{&c.diagonal, &c.east, &c.south, &c.centre}
	if diagonals {
		arrays = []*array[F]{&c.diagonal, &c.east, &c.south, &c.southEast, &c.southWest}
	}
	for _, a := range arrays {
		*a = l.newArray()
	}
	c.lo = c.diagonal.lo
	for i := range c.diagonal.rows {
		c.rows = append(c.rows, c.row(c.lo+i))
	}
	return c
}

// at returns the numbers of row y.
func (c *couplings[F]) at(y int) *points[F] { return &c.rows[y-c.lo] }

// points are the rows of numbers that the update of a row reads. The numbers of north and the two beside it belong to
// the row above: north[x] couples x to the north, northEast[x+1] to the north-east, northWest[x-1] to the north-west.
type points[F float] struct {
	diagonal, centre           []F
	east, south, north         []F
	southEast, southWest       []F // nil on level 0
	northEast, northWest, zero []F
}

// row puts the numbers of row y together.
func (c *couplings[F]) row(y int) points[F] {
	row := func(a array[F], y int) []F {
		if a.has(y) {
			return a.at(y)
		}
		return c.zero
	}
	p := points[F]{diagonal: row(c.diagonal, y), east: row(c.east, y), south: row(c.south, y),
		north: row(c.south, y-1), zero: c.zero}
	if c.southEast.rows == nil {
		p.centre = row(c.centre, y)
		return p
	}
	p.southEast, p.southWest = row(c.southEast, y), row(c.southWest, y)
	p.northEast, p.northWest = row(c.southWest, y-1), row(c.southEast, y-1)
	return p
}

// wide returns a row with the value before its first column and that behind its last one: column x is at x+1.
func wide[F float](row []F) []F {
	if row == nil {
		return nil
	}
	return unsafe.Slice((*F)(address(row, -1)), len(row)+2)
}

// load sets the arguments for whole vectors with all swept columns of s.
func (s *stencil[F]) load(a *rowArgs, dst []F, w F) {
	p, b := s.points, s.b
	if b == nil {
		b = p.zero
	}
	a.dst, a.a, a.b, a.c = address(dst, 0), address(s.centre, 0), address(s.north, 0), address(s.south, 0)
	a.d, a.n, a.z = address(b, 0), s.hi, bitsOf(w)
	for i, row := range [][]F{p.diagonal, p.east, p.north, p.south, p.southEast, p.southWest, p.northEast,
		p.northWest} {
		a.rows[i] = nil
		if row != nil {
			a.rows[i] = address(row, 0)
		}
	}
}

// restore makes the columns of dst on walls those of u, after a function has written them with others.
func (s *stencil[F]) restore(dst []F) {
	if s.lo > 0 {
		dst[0] = s.centre[0]
	}
	if s.hi < len(s.centre) {
		dst[s.hi] = s.centre[s.hi]
	}
}

// sweepKeeping does sweep and writes d of the swept columns to d. It reports false, and has done nothing, if it cannot
// do both in one go.
func sweepKeeping(e *engine, dst, d []float64, s *stencil[float64], w float64) bool {
	f := of[float64](e, s.hi-s.lo)
	if f == nil || s.points == nil {
		return false
	}
	s.load(&e.args, dst, w)
	e.args.dst2 = address(d, 0)
	f.sweepKeepPoints(&e.args)
	s.restore(dst)
	s.zero(d)
	return true
}

// zero makes the columns of d on walls and behind the mesh 0.
func (s *stencil[F]) zero(d []F) {
	clear(d[:s.lo])
	clear(d[s.hi:])
}

// sweepPoints is sweep for points with couplings of their own. dst must not be one of the rows of s.
func sweepPoints[F float](e *engine, dst []F, s *stencil[F], w F) {
	if f := of[F](e, s.hi-s.lo); f != nil {
		s.load(&e.args, dst, w)
		f.sweepPoints(&e.args)
		s.restore(dst)
		return
	}
	defectPoints(e, dst, s)
	for x := s.lo; x < s.hi; x++ {
		dst[x] = kernel.FMA(w, dst[x], s.centre[x])
	}
}

// defectPoints is defects for points with couplings of their own. dst must not be one of the rows of s.
func defectPoints[F float](e *engine, dst []F, s *stencil[F]) {
	if f := of[F](e, s.hi-s.lo); f != nil {
		s.load(&e.args, dst, 0)
		f.defectPoints(&e.args)
		s.zero(dst)
		return
	}
	p, b := s.points, s.b
	if b == nil {
		b = p.zero
	}
	u, east := wide(s.centre), wide(p.east)
	if p.southEast == nil {
		for x := s.lo; x < s.hi; x++ {
			t := kernel.FMA(p.north[x], s.north[x], kernel.FMA(p.south[x], s.south[x], b[x]))
			t = kernel.FMA(east[x], u[x], kernel.FMA(east[x+1], u[x+2], t))
			dst[x] = kernel.FMA(p.diagonal[x], t, -u[x+1])
		}
		return
	}
	north, south, northWest, northEast := wide(s.north), wide(s.south), wide(p.northWest), wide(p.northEast)
	for x := s.lo; x < s.hi; x++ {
		t := kernel.FMA(p.southWest[x], south[x], kernel.FMA(p.southEast[x], south[x+2], b[x]))
		t = kernel.FMA(northWest[x], north[x], kernel.FMA(northEast[x+2], north[x+2], t))
		t = kernel.FMA(p.north[x], north[x+1], kernel.FMA(p.south[x], south[x+1], t))
		t = kernel.FMA(east[x], u[x], kernel.FMA(east[x+1], u[x+2], t))
		dst[x] = kernel.FMA(-p.diagonal[x], u[x+1], t)
	}
}

// times multiplies d by C.
func times[F float](e *engine, d, centre []F) {
	if f := of[F](e, len(centre)); f != nil {
		n := len(centre) / f.lanes * f.lanes
		f.multiply(e.take(address(d, 0), address(d, 0), address(centre, 0), n, 0))
		d, centre = d[n:], centre[n:]
	}
	for x, c := range centre {
		d[x] *= c
	}
}

type float interface{ float32 | float64 }

// pad is the number of values before and after the columns of a row, which are 0 and may be read. It is a cache line of
// float32 values, so that columns begin at one.
const pad = cacheLine / 4

const cacheLine = 64

// stride returns the values from one row of nx columns to the next.
func stride(nx int) int { return (nx+pad-1)/pad*pad + 2*pad }

// array holds rows [lo, lo+len(rows)) of a level, numbered as in solver.Layout. Rows of a level that is held as a whole
// and has periodic top and bottom repeat: they are the same memory.
type array[F float] struct {
	lo   int
	rows [][]F // each with pad values before it in memory, and 2*pad or more behind
}

// newArray returns an array of zeros whose row y is row canonical(y). It begins some cache lines behind a page: where
// the same rows of many arrays are read together, they must not all have the same places in the first cache.
func newArray[F float](nx, lo, hi, lines int, canonical func(int) int) array[F] {
	a := array[F]{lo: lo, rows: make([][]F, hi-lo)}
	first, last := canonical(lo), canonical(lo)
	for y := lo; y < hi; y++ {
		first, last = min(first, canonical(y)), max(last, canonical(y))
	}
	memory := rowsBehind[F](nx, last-first+1, lines)
	for i := range a.rows {
		a.rows[i] = memory[canonical(lo+i)-first]
	}
	return a
}

// newRows returns n rows of zeros. At least 2*pad values lie behind each row: columns.gather loads up to pad+3 of them
// with AVX-512, and uses those within pad.
func newRows[F float](nx, n int) [][]F { return rowsBehind[F](nx, n, 0) }

// rowsBehind is newRows for rows that begin some cache lines behind a page, if they are large.
func rowsBehind[F float](nx, n, lines int) [][]F {
	skip := lines * cacheLine / int(unsafe.Sizeof(F(0)))
	memory := make([]F, skip+n*stride(nx)+2*pad) // one pad is for the alignment, one lies behind the last row
	huge.Advise(bytesOf(memory))
	memory = memory[skip:]
	for uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%64 != 0 {
		memory = memory[1:]
	}
	rows := make([][]F, n)
	for i := range rows {
		at := i*stride(nx) + pad
		rows[i] = memory[at : at+nx : at+nx+pad]
	}
	return rows
}

// bytesOf returns the memory of values: a dense row, as all machines that the program is built for are little-endian.
func bytesOf[F float](values []F) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(F(0))))
}

// at returns row y.
func (a array[F]) at(y int) []F { return a.rows[y-a.lo] }

// has reports whether row y is held.
func (a array[F]) has(y int) bool { return y >= a.lo && y < a.lo+len(a.rows) }

// stencil is the rows that the update of a row reads, and its coefficients. b is nil for 0.
type stencil[F float] struct {
	north, centre, south, b []F
	h, q                    F
	lo, hi                  int // columns that are swept
	mirrorLeft, mirrorRight bool
	ahead                   []F        // a row that will be used soon; nil for none
	points                  *points[F] // nil unless points have couplings of their own
}

// defect returns d at column x, whose neighbours are west and east.
func (s *stencil[F]) defect(x int, west, east F) F {
	var b F
	if s.b != nil {
		b = s.b[x]
	}
	return kernel.Defect(s.centre[x], west, east, s.north[x], s.south[x], s.h, s.q, b)
}

// inner returns the swept columns whose neighbours lie in the mesh.
func (s *stencil[F]) inner() (lo, hi int) {
	lo, hi = s.lo, s.hi
	if s.mirrorLeft {
		lo++
	}
	if s.mirrorRight {
		hi--
	}
	return lo, hi
}
