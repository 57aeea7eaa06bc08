package multigrid

import (
	"errors"
	"math"

	"jacobi/solver"
)

// Blocking divides a level into blocks, rows or columns across its longer direction, and the points of a block into
// slots.
//
// Where the longer direction is periodic, the last block is the border: it is a neighbour of the first block, too. All
// blocks before it are the chain, which has the solution p[i] + Ring[i] x[border], with p that for x[border] = 0.
type Blocking struct {
	Slots, Blocks int
	Chain         int // blocks that are not the border
	mesh          solver.Mesh
	columns       bool // the blocks are columns
}

// Blocking divides the coarsest level.
func (l Layout) Blocking() Blocking {
	m := l.Plan.Levels[len(l.Plan.Levels)-1].Mesh
	lo, hi := m.InteriorColumns()
	b := Blocking{mesh: m, Slots: hi - lo, Blocks: m.Interior().Rows()}
	low := m.Walls.Top
	if b.columns = b.Slots > b.Blocks; b.columns {
		b.Slots, b.Blocks = b.Blocks, b.Slots
		low = m.Walls.Left
	}
	if b.Chain = b.Blocks; low == solver.Periodic {
		b.Chain--
	}
	return b
}

// CoarsestSize returns the slots, the blocks and the bytes of the matrices of NewDirect or, for a weighted operator, of
// NewFactors.
func (l Layout) CoarsestSize() (slots, blocks int, bytes int64) {
	b := l.Blocking()
	matrices := b.Blocks
	if b.ring() {
		matrices += b.Chain
	}
	if l.Plan.Weighted {
		if matrices += b.Blocks; b.ring() {
			matrices += 2
		}
	}
	return b.Slots, b.Blocks, 8 * int64(matrices) * int64(b.Slots*b.Slots)
}

// ring reports whether there is a border.
func (b *Blocking) ring() bool { return b.Chain < b.Blocks }

// Point returns the column and the row of a slot of a block.
func (b *Blocking) Point(block, slot int) (x, y int) {
	x, _ = b.mesh.InteriorColumns()
	y = b.mesh.Interior().Lo
	if b.columns {
		return x + block, y + slot
	}
	return x + slot, y + block
}

// matrices are those of an elimination. All ranks and devices use these, so they are the same on every processor: each
// operation is rounded once.
type matrices struct {
	Blocking
	Inverse []float64 // S^-1 by block, row by row; of the border, the inverse of what is left of its equations
	Ring    []float64 // by block of the chain, row by row; nil without a border
}

func (b Blocking) newMatrices() matrices {
	m := matrices{Blocking: b, Inverse: make([]float64, b.Blocks*b.Slots*b.Slots)}
	if b.ring() {
		m.Ring = make([]float64, b.Chain*b.Slots*b.Slots)
	}
	return m
}

// of returns the matrix of a block.
func (m *matrices) of(all []float64, block int) []float64 {
	n := m.Slots * m.Slots
	return all[block*n : (block+1)*n]
}

// errSingular is the error for equations that many fields solve, or that rounding has made such.
var errSingular = errors.New("nothing determines the solution: no wall and no point is fixed, and the screening " +
	"is lost")

// invert replaces the matrix of a block by its inverse, which is 0 at slots that are no unknowns. It eliminates without
// pivots: no diagonal element is less than the sum of the others in its row, or the matrix is symmetric and positive
// definite.
func (m *matrices) invert(block int, unknown func(block, slot int) bool) error {
	s, n := m.of(m.Inverse, block), m.Slots
	for p := range n {
		pivot, row := s[p*n+p], s[p*n:(p+1)*n]
		if !(pivot > 0) {
			return errSingular
		}
		row[p] = 1
		for k := range row {
			row[k] /= pivot
		}
		for j := range n {
			f := s[j*n+p]
			if j == p || f == 0 {
				continue
			}
			s[j*n+p] = 0
			for k, v := range row {
				s[j*n+k] = math.FMA(-f, v, s[j*n+k])
			}
		}
	}
	for j := range n {
		if !unknown(block, j) {
			s[j*n+j] = 0
		}
	}
	return nil
}

// fillRing computes Ring, column by column. coupled adds to b the couplings of the chain to a slot of the border.
func (m *matrices) fillRing(solveChain func(x, b []float64), coupled func(slot int, b []float64)) {
	x, b := make([]float64, m.Chain*m.Slots), make([]float64, m.Chain*m.Slots)
	for k := range m.Slots {
		clear(b)
		coupled(k, b)
		solveChain(x, b)
		for at, v := range x {
			m.Ring[at*m.Slots+k] = v
		}
	}
}

// closeRing solves the equations of the border, whose right-hand side is y, and makes x, which is p, the solution.
func (m *matrices) closeRing(x, y []float64) {
	n := m.Slots
	border := x[m.Chain*n:]
	clear(border)
	multiply(border, m.of(m.Inverse, m.Chain), y)
	for i := range m.Chain {
		multiply(x[i*n:(i+1)*n], m.of(m.Ring, i), border)
	}
}

// multiply adds the product of a matrix and a vector to dst.
func multiply(dst, matrix, v []float64) {
	for j, sum := range dst {
		for k, c := range matrix[j*len(v):][:len(v)] {
			sum = math.FMA(c, v[k], sum)
		}
		dst[j] = sum
	}
}
