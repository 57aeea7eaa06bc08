package cuda

import (
	"context"
	"encoding/json"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Offer is what a rank tells a neighbour on its node, so that this one can write halo rows straight into its memory.
type Offer struct {
	Rank   int                 `json:"rank"`
	Side   solver.Side         `json:"side"` // of the rank that offers
	Rows   solver.Stripe       `json:"rows"` // held in each field
	Pitch  int                 `json:"pitch"`
	Depth  int                 `json:"depth"`
	Fields [2]driver.IPCHandle `json:"fields"` // now first, as after Load
	Flags  driver.IPCHandle    `json:"flags"`
}

// flags is device memory with two 32-bit words a side: the number of the newest exchange whose rows have come from the
// neighbour there, and that of the newest exchange for which the neighbour has room.
//
// Two more count blocks of push_rows, see direct.go.
const (
	flagStride = 128
	flagsBytes = 2 << 20 // an allocation of its own, so that a neighbour maps nothing else
)

func cameAt(side solver.Side) driver.DevicePtr { return driver.DevicePtr(int(side) * flagStride) }
func roomAt(side solver.Side) driver.DevicePtr { return driver.DevicePtr((2 + int(side)) * flagStride) }
func countAt(side solver.Side) driver.DevicePtr {
	return driver.DevicePtr((4 + int(side)) * flagStride)
}

// OpenFlags allocates the words that neighbours write; before Offer.
func (b *Backend) OpenFlags() (err error) {
	if b.flags, err = b.alloc(flagsBytes); err != nil {
		return err
	}
	if err := b.fast.Fill(b.flags, 0, flagsBytes); err != nil {
		return err
	}
	return b.fast.Synchronize()
}

// Offer returns what the neighbour at a side needs.
func (b *Backend) Offer(rank int, side solver.Side) ([]byte, error) {
	o := Offer{Rank: rank, Side: side, Rows: b.now.rows, Pitch: b.now.pitch, Depth: b.layout.Depth}
	var err error
	for i, f := range []field{b.now, b.next} {
		if o.Fields[i], err = b.context.IPCHandle(f.base); err != nil {
			return nil, fmt.Errorf("offer a field to the neighbour: %w", err)
		}
	}
	if o.Flags, err = b.context.IPCHandle(b.flags); err != nil {
		return nil, fmt.Errorf("offer flags to the neighbour: %w", err)
	}
	return json.Marshal(o)
}

// Peer is the way to a neighbour on the same node: this rank writes its edge rows into the neighbour's halo and then a
// number into a word of the neighbour's memory, for which the neighbour's stream waits. No kernel waits, so ranks may
// share a GPU.
//
// If every pass ends in an exchange, nothing has to tell the writer that the halo is free: the halo that the rows of
// exchange n+2 go to was last read by the neighbour's edges before it posted exchange n+1, for whose rows this rank's
// stream has waited. A halo deeper than a pass is read by passes in between; then each rank says when its next field's
// halo was read for the last time.
type Peer struct {
	*Backend
	side   solver.Side
	theirs [2]field // their fields: the one that was now when mine was now, first
	mine   driver.DevicePtr
	words  driver.DevicePtr // their flags
}

// OpenPeer maps the memory that the neighbour at a side offers.
func (b *Backend) OpenPeer(side solver.Side, offer []byte) (p *Peer, err error) {
	var o Offer
	if err := json.Unmarshal(offer, &o); err != nil {
		return nil, fmt.Errorf("offer of the neighbour: %w", err)
	}
	if o.Depth != b.layout.Depth || o.Pitch != b.now.pitch || o.Side != side.Opposite() {
		return nil, fmt.Errorf("offer of rank %d: depth %d, pitch %d, %v side; want %d, %d, %v", o.Rank, o.Depth,
			o.Pitch, o.Side,
			b.layout.Depth, b.now.pitch, side.Opposite())
	}
	p = &Peer{Backend: b, side: side, mine: b.now.base}
	defer func() {
		if err != nil {
			_ = p.Close() // the first error counts
			p = nil
		}
	}()
	for i, h := range o.Fields {
		base, err := b.context.OpenIPC(h)
		if err != nil {
			return p, fmt.Errorf("map the memory of rank %d: %w", o.Rank, err)
		}
		p.theirs[i] = field{base: base, rows: o.Rows, pitch: o.Pitch}
	}
	if p.words, err = b.context.OpenIPC(o.Flags); err != nil {
		return p, fmt.Errorf("map the flags of rank %d: %w", o.Rank, err)
	}
	return p, nil
}

// deep reports whether some passes do not end in an exchange.
func (p *Peer) deep() bool { return p.layout.Depth > p.maxSweeps() }

// allow tells the neighbour that the halo of next is free for the next exchange, once what the stream holds is done.
func (p *Peer) allow() error {
	if !p.deep() {
		return nil
	}
	return p.fast.WriteValue(p.words+roomAt(p.side.Opposite()), uint32(p.posted+1))
}

// rows returns where the edge of next lies, and the neighbour's halo for it.
func (p *Peer) rows() (to, from driver.DevicePtr) {
	theirs := p.theirs[1] // their next is the field that goes with mine
	if p.next.base == p.mine {
		theirs = p.theirs[0]
	}
	halo := theirs.rows.Lo // their upper halo is the first they hold, their lower one the last
	if p.side == solver.Top {
		halo = theirs.rows.Hi - p.layout.Depth
	}
	return theirs.at(halo), p.next.at(p.layout.Edge(p.side).Lo)
}

func (p *Peer) post(_ context.Context, n solver.ExchangeNumber) error {
	p.posted = n
	if p.deep() {
		if err := p.fast.WaitValue(p.flags+roomAt(p.side), uint32(n)); err != nil {
			return err
		}
	}
	to, from := p.rows()
	if err := p.fast.CopyOnDevice(to, from, p.layout.Depth*p.next.pitch); err != nil {
		return err
	}
	return p.fast.WriteValue(p.words+cameAt(p.side.Opposite()), uint32(n))
}

func (p *Peer) wait(_ context.Context, n solver.ExchangeNumber) error {
	return p.fast.WaitValue(p.flags+cameAt(p.side), uint32(n))
}

// Close unmaps the neighbour's memory.
func (p *Peer) Close() error {
	for _, m := range []driver.DevicePtr{p.theirs[0].base, p.theirs[1].base, p.words} {
		if m == 0 {
			continue
		}
		if err := p.context.CloseIPC(m); err != nil {
			return fmt.Errorf("unmap the memory of a neighbour: %w", err)
		}
	}
	return nil
}

// release lets the streams of a backend go on that wait for a neighbour, so that it can be closed after a failure.
func (b *Backend) release() error {
	if b.flags == 0 {
		return nil
	}
	const last = 1 << 30 // beyond the number of any exchange
	s, err := b.context.NewStream(0)
	if err != nil {
		return err
	}
	for _, side := range []solver.Side{solver.Top, solver.Bottom} {
		for _, at := range []driver.DevicePtr{cameAt(side), roomAt(side)} {
			if err := s.WriteValue(b.flags+at, last); err != nil {
				return err
			}
		}
	}
	return s.Synchronize()
}
