package levels

import (
	"unsafe"

	"jacobi/internal/base/huge"
	"jacobi/internal/compute/cpu/kernel"
)

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
