package cuda

import (
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// beyond is the number of rows or columns beyond both ends of a mesh that tables by fine row or column have.
const beyond = 64

// restricted is struct Restricted in kernels/multigrid_level.cuh.
type restricted struct {
	near, next float32
	coarse, _  int32
}

// restrictedRows returns the restriction by fine row, from row -beyond on, for an axis of n fine points. A row that no
// sweep updates adds nothing.
func restrictedRows(a multigrid.Axis, n int) []restricted {
	rows := make([]restricted, n+2*beyond)
	s := newSpan(n, a.Low, a.High)
	for i := range rows {
		y := i - beyond
		coarse, _ := a.Between(y)
		r := restricted{coarse: int32(coarse)}
		if a.Low == solver.Periodic || inside(s, y) {
			r.near, r.next = a.Weight(coarse, y), a.Weight(coarse+1, y)
		}
		rows[i] = r
	}
	return rows
}

// inside reports whether point i is swept.
func inside(s span, i int) bool {
	lo, hi := s.regular()
	return i >= int(lo) && i < int(hi)
}

// taps is struct Taps.
type taps struct {
	w     [multigrid.Taps]float32
	first int32
	_     [3]int32
}

// tapsOf returns the restriction by coarse point, for an axis of n fine and m coarse points.
func tapsOf(a multigrid.Axis, n, m int) []taps {
	points := make([]taps, m)
	s := newSpan(n, a.Low, a.High)
	for i := range points {
		first, k := a.Around(i)
		points[i].first = int32(first)
		for j := range k {
			if a.Low == solver.Periodic || inside(s, first+j) {
				points[i].w[j] = a.Weight(i, first+j)
			}
		}
	}
	return points
}

// between is struct Between.
type between struct {
	coarse int32
	weight float32
}

// betweenPoints returns the interpolation by fine point, from point -beyond on, for an axis of n fine points. Beyond a
// wall it is that of the point whose value is found there.
func betweenPoints(a multigrid.Axis, n int) []between {
	points := make([]between, n+2*beyond)
	s := newSpan(n, a.Low, a.High)
	for i := range points {
		at := i - beyond
		if a.Low != solver.Periodic {
			at = s.held(at)
		}
		coarse, weight := a.Between(at)
		points[i] = between{int32(coarse), weight}
	}
	return points
}

// fixedWords returns the words of 32 bits for a row of the mesh.
func (l *level) fixedWords() int { return l.Mesh.NX/32 + 1 }

// fixedBits returns a bit for each point of the rows that the level holds, set where the point is fixed.
func (l *level) fixedBits(fixed multigrid.FixedRuns) []uint32 {
	words := l.fixedWords()
	bits := make([]uint32, words*l.u.rows.Rows())
	for i := range l.u.rows.Rows() {
		y, _ := l.Mesh.Canonical(l.u.rows.Lo + i)
		setBits(bits[i*words:], 0, fixed[y])
	}
	return bits
}

// setBits sets the bits of columns. Bit `first` is the first column of the row.
func setBits(bits []uint32, first int, columns []multigrid.Columns) {
	for _, c := range columns {
		for x := c.Lo; x < c.Hi; x++ {
			bits[(first+x)/32] |= 1 << ((first + x) % 32)
		}
	}
}
