package cpu

import "unsafe"

// edgeMasks say which columns of the first and of the last block of a row are swept: for each block a row of
// values, all bits set or clear. The fixed columns and the padding are not swept.
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
