package cpu

import (
	"encoding/binary"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// rowLayout places the columns of a row in memory. A row is a sequence of blocks of 4 vectors of lanes values; lane l
// of vector j of block b holds column 4*(b*lanes+l)+j. The four neighbouring columns of a norm group are therefore in
// one lane, so a group needs no shuffle, and the west and east neighbours of most columns are in other vectors at the
// same lane. With lanes == 1 this is the dense order. Columns from nx on are padding and stay zero.
type rowLayout struct {
	nx     int
	size   int // bytes of a value
	lanes  int // values in a vector
	blocks int // blocks in a row
	stride int // bytes from one row to the next
	// periodic makes columns 0 and nx-1 copies of columns nx-2 and 1. mirrored has a column nx, which repeats column
	// nx-2, for the point beyond a Neumann wall on the right.
	periodic, mirrored bool

	packBlocks, unpackBlocks func(dst, src unsafe.Pointer, blocks int) // Pack and Unpack of the kernel; may be nil
}

// rowUnit is a stride's unit in bytes: every stride is an odd multiple of it. Thus 16 consecutive rows never share the
// sets of a cache, as rows of a mesh with 2^k columns otherwise would, and narrow rows waste little memory.
const rowUnit = 256

func newRowLayout(m solver.Mesh, k kernel.Kernel) rowLayout {
	l := rowLayout{nx: m.NX, size: m.DType.Size(), lanes: k.Lanes, packBlocks: k.Pack, unpackBlocks: k.Unpack}
	l.periodic, l.mirrored = m.PeriodicColumns(), m.Walls.Right == solver.Neumann
	l.blocks = ceilDiv(m.NX, 4*k.Lanes)
	l.stride = l.strideOf(l.blocks)
	return l
}

// strideOf returns the stride of rows of the given number of blocks. A mirrored column may lie in the vector after
// them.
func (l rowLayout) strideOf(blocks int) int {
	bytes := blocks * l.blockBytes()
	if l.mirrored {
		bytes += l.vectorBytes()
	}
	return (ceilDiv(bytes, rowUnit) | 1) * rowUnit
}

func (l rowLayout) vectorBytes() int { return l.lanes * l.size }
func (l rowLayout) blockBytes() int  { return 4 * l.vectorBytes() }

// index returns the position of a column in its row, in values.
func (l rowLayout) index(column int) int {
	q := column / 4
	return q/l.lanes*4*l.lanes + column%4*l.lanes + q%l.lanes
}

// repeat sets the columns of a row that repeat others.
func (l rowLayout) repeat(row unsafe.Pointer) {
	if l.periodic {
		l.copyColumn(row, 0, l.nx-2)
		l.copyColumn(row, l.nx-1, 1)
	}
	if l.mirrored {
		l.copyColumn(row, l.nx, l.nx-2)
	}
}

func (l rowLayout) copyColumn(row unsafe.Pointer, to, from int) {
	copyValue(unsafe.Add(row, l.index(to)*l.size), unsafe.Add(row, l.index(from)*l.size), l.size)
}

// copyValue copies a value of 4 or 8 bytes.
func copyValue(to, from unsafe.Pointer, size int) {
	if size == 4 {
		*(*uint32)(to) = *(*uint32)(from)
	} else {
		*(*uint64)(to) = *(*uint64)(from)
	}
}

// pack writes the dense little-endian row src to the row at dst. The kernel's Pack does the whole blocks.
func (l rowLayout) pack(dst unsafe.Pointer, src []byte) {
	l.packColumns(dst, src)
	l.repeat(dst)
}

// packEvery is packColumns for a row in which the blocks are every n-th one.
func (l rowLayout) packEvery(dst unsafe.Pointer, src []byte, n int) {
	if n == 1 {
		l.packColumns(dst, src)
		return
	}
	one := l
	for b := range l.blocks {
		one.nx, one.blocks = min(4*l.lanes, l.nx-4*l.lanes*b), 1
		one.packColumns(unsafe.Add(dst, b*n*l.blockBytes()), src[b*4*l.lanes*l.size:])
	}
}

// packColumns is pack without the columns that repeat others.
func (l rowLayout) packColumns(dst unsafe.Pointer, src []byte) {
	from := 0
	if n := l.nx / (4 * l.lanes); l.packBlocks != nil && n > 0 {
		l.packBlocks(dst, unsafe.Pointer(unsafe.SliceData(src)), n)
		from = n * 4 * l.lanes
	}
	if l.size == 4 {
		row := unsafe.Slice((*uint32)(dst), l.blocks*4*l.lanes)
		for c := from; c < l.nx; c++ {
			row[l.index(c)] = binary.LittleEndian.Uint32(src[4*c:])
		}
		return
	}
	row := unsafe.Slice((*uint64)(dst), l.blocks*4*l.lanes)
	for c := from; c < l.nx; c++ {
		row[l.index(c)] = binary.LittleEndian.Uint64(src[8*c:])
	}
}

// unpack is the inverse of pack.
func (l rowLayout) unpack(dst []byte, src unsafe.Pointer) {
	from := 0
	if n := l.nx / (4 * l.lanes); l.unpackBlocks != nil && n > 0 {
		l.unpackBlocks(unsafe.Pointer(unsafe.SliceData(dst)), src, n)
		from = n * 4 * l.lanes
	}
	if l.size == 4 {
		row := unsafe.Slice((*uint32)(src), l.blocks*4*l.lanes)
		for c := from; c < l.nx; c++ {
			binary.LittleEndian.PutUint32(dst[4*c:], row[l.index(c)])
		}
		return
	}
	row := unsafe.Slice((*uint64)(src), l.blocks*4*l.lanes)
	for c := from; c < l.nx; c++ {
		binary.LittleEndian.PutUint64(dst[8*c:], row[l.index(c)])
	}
}

// sweepable returns the rows of those held that a sweep may update: all but the rows of fixed walls and the outermost
// rows of halos.
func sweepable(l solver.Layout, held solver.Stripe) solver.Stripe {
	if l.Neighbour[solver.Top] || l.Mesh.Walls.Top == solver.Dirichlet {
		held.Lo++
	}
	if l.Neighbour[solver.Bottom] || l.Mesh.Walls.Bottom == solver.Dirichlet {
		held.Hi--
	}
	return held
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
