package cuda

import (
	"jacobi/cuda/driver"
	"jacobi/solver"
)

// OpenWindow allocates the words that neighbours write, of however many ranks. It must be called before OfferWindow.
func (b *Backend) OpenWindow(int) error { return b.dev.openFlags() }

// OfferWindow returns what other ranks need for MapWindow: the fields and the words of this one.
func (b *Backend) OfferWindow(rank int) ([]byte, error) {
	d, fields := b.dev, [2]field{}
	fields[d.now.index], fields[d.next.index] = d.now, d.next
	return d.offer(offer{Rank: rank, Shape: d.windowShape(), Rows: d.now.rows},
		fields[0].base, fields[1].base, driver.DevicePtr(d.flags))
}

func (d *device) windowShape() []int { return []int{d.layout.Depth, d.now.pitch} }

// MapWindow maps what the backend of a neighbour offers.
func (b *Backend) MapWindow(offer []byte) (*Window, error) {
	return b.dev.mapWindow(offer, b.dev.windowShape(), 3)
}

// peer is the neighbour at a side, whose memory this rank writes into.
type peer struct {
	side   solver.Side // at which the neighbour lies
	depth  int
	theirs [2]field // by index
	words  flags    // the neighbour's
}

// newPeer returns the neighbour at a side whose memory is mapped.
func newPeer(d *device, side solver.Side, w *Window) *peer {
	p := &peer{side: side, depth: d.layout.Depth, words: flags(w.memory[2])}
	for i := range p.theirs {
		p.theirs[i] = field{base: w.memory[i], rows: w.rows, pitch: d.now.pitch, index: i}
	}
	return p
}

// halo returns the address of the neighbour's halo that this rank's edge fills, in the field with the given index.
func (p *peer) halo(index int) driver.DevicePtr {
	theirs := p.theirs[index]
	first := theirs.rows.Lo // the upper halo comes first among the rows held, the lower one last
	if p.side == solver.Top {
		first = theirs.rows.Hi - p.depth
	}
	return theirs.at(first)
}

// came is the neighbour's word that says which rows of this rank have come.
func (p *peer) came() driver.DevicePtr { return p.words.came(p.side.Opposite()) }

// room is the neighbour's word that says for which exchange this rank's halo is free.
func (p *peer) room() driver.DevicePtr { return p.words.room(p.side.Opposite()) }

// loaded is the neighbour's word that says how many fields this rank has loaded.
func (p *peer) loaded() driver.DevicePtr { return p.words.loaded(p.side.Opposite()) }
