package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// offer is a rank's message to others on its node that lets them write into its memory.
type offer struct {
	Rank   int                `json:"rank"`
	Shape  []int              `json:"shape"` // of the memory: the same at both ranks
	Rows   solver.Stripe      `json:"rows"`  // held by the rank that offers
	Memory []driver.IPCHandle `json:"memory"`
}

// Window is the mapped memory of another rank on the same node, into which this rank writes.
type Window struct {
	context *driver.Context // nil if the memory is of this process
	rows    solver.Stripe
	memory  []driver.DevicePtr
}

// offer encodes o with handles of memory.
func (d *device) offer(o offer, memory ...driver.DevicePtr) ([]byte, error) {
	for _, m := range memory {
		h, err := d.context.IPCHandle(m)
		if err != nil {
			return nil, fmt.Errorf("offer memory to other ranks: %w", err)
		}
		o.Memory = append(o.Memory, h)
	}
	return json.Marshal(o)
}

// mapWindow maps what another rank offers, which must have a shape.
func (d *device) mapWindow(encoded []byte, shape []int, pieces int) (*Window, error) {
	var o offer
	if err := json.Unmarshal(encoded, &o); err != nil {
		return nil, fmt.Errorf("offer of memory: %w", err)
	}
	if !slices.Equal(o.Shape, shape) || len(o.Memory) != pieces {
		return nil, fmt.Errorf("memory of rank %d: %d pieces of shape %v; want %d of %v", o.Rank, len(o.Memory),
			o.Shape, pieces, shape)
	}
	w := &Window{context: d.context, rows: o.Rows}
	for _, h := range o.Memory {
		m, err := d.context.OpenIPC(h)
		if err != nil {
			_ = w.Close() // the first error counts
			return nil, fmt.Errorf("map the memory of rank %d: %w", o.Rank, err)
		}
		w.memory = append(w.memory, m)
	}
	return w, nil
}

// Close unmaps the memory.
func (w *Window) Close() error {
	if w.context == nil {
		return nil
	}
	for _, m := range w.memory {
		if err := w.context.CloseIPC(m); err != nil {
			return fmt.Errorf("unmap the memory of another rank: %w", err)
		}
	}
	return nil
}

// windows are those that an exchange uses; nil for none.
type windows []*Window

// close unmaps each of them once.
func (all windows) close() error {
	var errs []error
	closed := map[*Window]bool{nil: true}
	for _, w := range all {
		if !closed[w] {
			closed[w] = true
			errs = append(errs, w.Close())
		}
	}
	return errors.Join(errs...)
}

// lastExchange is beyond the number of any exchange.
const lastExchange = 1 << 30

// releaseWords unblocks streams that wait until words of this rank's memory reach the number of an exchange.
func (d *device) releaseWords(words ...driver.DevicePtr) error {
	s, err := d.context.NewStream(0)
	if err != nil {
		return err
	}
	for _, w := range words {
		if err := s.WriteValue(w, lastExchange); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return errors.Join(s.Synchronize(), s.Close())
}

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

// flags is device memory with two 32-bit words for each side: the number of the newest exchange whose rows have come
// from the neighbour, and the number of the newest exchange for which the neighbour's halo is free. Two more words for
// each side count the progress of a kernel that hands rows on (exchange.go) and the fields that the neighbour has
// loaded. 0 is no memory.
type flags driver.DevicePtr

const (
	flagStride = 128
	flagsBytes = 2 << 20 // an allocation of its own, so that a neighbour maps nothing else
)

func (f flags) word(i int) driver.DevicePtr {
	return driver.DevicePtr(f) + driver.DevicePtr(i*flagStride)
}

func (f flags) came(side solver.Side) driver.DevicePtr   { return f.word(int(side)) }
func (f flags) room(side solver.Side) driver.DevicePtr   { return f.word(2 + int(side)) }
func (f flags) count(side solver.Side) driver.DevicePtr  { return f.word(4 + int(side)) }
func (f flags) loaded(side solver.Side) driver.DevicePtr { return f.word(6 + int(side)) }

// openFlags allocates the words that neighbours write.
func (d *device) openFlags() error {
	p, err := d.alloc(flagsBytes)
	if err != nil {
		return err
	}
	d.flags = flags(p)
	if err := d.fast.Fill(p, 0, flagsBytes); err != nil {
		return err
	}
	return d.fast.Synchronize()
}

// release unblocks the streams that wait for a neighbour, so that the device can be closed after a failure.
func (d *device) release() error {
	if d.flags == 0 {
		return nil
	}
	f := d.flags
	return d.releaseWords(f.came(solver.Top), f.room(solver.Top), f.loaded(solver.Top), f.came(solver.Bottom),
		f.room(solver.Bottom), f.loaded(solver.Bottom))
}
