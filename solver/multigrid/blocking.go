package multigrid

import "jacobi/solver"

// Blocking divides a level into blocks, rows or columns across its longer direction, and the points of a block into
// slots.
//
// Where the longer direction is periodic, the last block is the border: it is a neighbour of the first block, too. All
// blocks before it are the chain, which has the solution p[i] + ring[i] x[border], with p that for x[border] = 0.
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

// values returns the number of values of Factors.
func (b *Blocking) values() int {
	matrices := 2 * b.Blocks
	if b.hasBorder() {
		matrices += b.Chain + 2
	}
	return matrices*b.Slots*b.Slots + 2*b.Blocks*b.Slots
}

// FactorBytes returns the bytes of the values of NewFactors and of two vectors.
func (l Layout) FactorBytes() int64 {
	b := l.Blocking()
	return 8 * int64(b.values()+2*b.Blocks*b.Slots)
}

// hasBorder reports whether there is a border.
func (b *Blocking) hasBorder() bool { return b.Chain < b.Blocks }

// Point returns the column and the row of a slot of a block; slot i + Slots of a block is slot i of the next one.
func (b *Blocking) Point(block, slot int) (x, y int) {
	block, slot = block+slot/b.Slots, slot%b.Slots
	x, _ = b.mesh.InteriorColumns()
	y = b.mesh.Interior().Lo
	if b.columns {
		return x + block, y + slot
	}
	return x + slot, y + block
}

// slot returns a slot that may lie beyond the ends of a block. ok is false if there is none.
func (b *Blocking) slot(j int) (slot int, ok bool) {
	across := b.mesh.Walls.Left
	if b.columns {
		across = b.mesh.Walls.Top
	}
	if across == solver.Periodic {
		return (j + b.Slots) % b.Slots, true
	}
	return j, j >= 0 && j < b.Slots
}
