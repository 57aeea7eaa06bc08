package cpu

import "unsafe"

// edgeMasks mark the columns of a row's first and last block that are swept: for each value of the block all bits set,
// or all clear. The fixed columns and the padding are not swept.
type edgeMasks struct{ first, last []byte }

func newEdgeMasks(l rowLayout) edgeMasks {
	all := make([]byte, l.blocks*l.blockBytes())
	for c := 1; c < l.nx-1; c++ {
		at := l.index(c) * l.size
		for i := range l.size {
			all[at+i] = 0xff
		}
	}
	n := l.blockBytes()
	return edgeMasks{first: append([]byte(nil), all[:n]...), last: append([]byte(nil), all[len(all)-n:]...)}
}

func (b *Backend) firstMask() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b.masks.first)) }
func (b *Backend) lastMask() unsafe.Pointer  { return unsafe.Pointer(unsafe.SliceData(b.masks.last)) }
