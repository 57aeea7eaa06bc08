package cpu

import (
	"encoding/binary"
	"unsafe"

	"jacobi/internal/cpu/kernel"
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

	packBlocks, unpackBlocks func(dst, src unsafe.Pointer, blocks int) // Pack and Unpack of the kernel; may be nil
}

// rowUnit is a stride's unit in bytes: every stride is an odd multiple of it. Thus 16 consecutive rows never share the
// sets of a cache, as rows of a mesh with 2^k columns otherwise would, and narrow rows waste little memory.
const rowUnit = 256

func newRowLayout(m solver.Mesh, k kernel.Kernel) rowLayout {
	l := rowLayout{nx: m.NX, size: m.DType.Size(), lanes: k.Lanes, packBlocks: k.Pack, unpackBlocks: k.Unpack}
	l.blocks = ceilDiv(m.NX, 4*k.Lanes)
	l.stride = paddedStride(l.blocks * l.blockBytes())
	return l
}

func paddedStride(bytes int) int { return (ceilDiv(bytes, rowUnit) | 1) * rowUnit }

func (l rowLayout) vectorBytes() int { return l.lanes * l.size }
func (l rowLayout) blockBytes() int  { return 4 * l.vectorBytes() }

// index returns the position of a column in its row, in values.
func (l rowLayout) index(column int) int {
	q := column / 4
	return q/l.lanes*4*l.lanes + column%4*l.lanes + q%l.lanes
}

// pack writes the dense little-endian row src to the row at dst. The kernel's Pack does the whole blocks.
func (l rowLayout) pack(dst unsafe.Pointer, src []byte) {
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

func ceilDiv(a, b int) int { return (a + b - 1) / b }
