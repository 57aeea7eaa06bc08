package cpu

import (
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
)

// A row of sweptRows holds one bit for each column, set if the column is swept: for each block 4 masks of
// kernel.MaskBytes, one for each vector, with a bit for each lane.
type sweptRows struct {
	*field
	columns rowLayout
	lo, hi  int // of the columns between walls
}

// maskBytes returns the bytes of the masks of a block.
func (l rowLayout) maskBytes() int { return 4 * kernel.MaskBytes(l.lanes) }

// maskStride returns the bytes from one row of masks to the next.
func (l rowLayout) maskStride() int { return ceilDiv(l.blocks*l.maskBytes(), cacheLine) * cacheLine }

// set makes row y that of all columns between the walls but those of fixed, which may be nil for none. It returns the
// range of blocks that hold fixed columns.
func (s sweptRows) set(y int, fixed []bool) (blocks blockRange) {
	row := unsafe.Slice((*byte)(s.row(y)), s.columns.maskStride())
	clear(row)
	lanes := s.columns.lanes
	for c := s.lo; c < s.hi; c++ {
		if fixed != nil && fixed[c] {
			block := c / (4 * lanes)
			blocks = blocks.union(blockRange{block, block + 1})
			continue
		}
		at := s.columns.index(c)
		lane := at % lanes
		row[at/lanes*kernel.MaskBytes(lanes)+lane/8] |= 1 << (lane % 8)
	}
	return blocks
}

// blockRange is the range of blocks [lo, hi).
type blockRange struct{ lo, hi int }

// union returns the smallest range that holds both.
func (r blockRange) union(o blockRange) blockRange {
	switch {
	case r.lo == r.hi:
		return o
	case o.lo == o.hi:
		return r
	}
	return blockRange{min(r.lo, o.lo), max(r.hi, o.hi)}
}

// within returns the part of r within [from, to), and an empty range at from if there is none.
func (r blockRange) within(from, to int) blockRange {
	if lo, hi := max(r.lo, from), min(r.hi, to); lo < hi {
		return blockRange{lo, hi}
	}
	return blockRange{from, from}
}
