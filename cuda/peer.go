package cuda

import (
	"context"
	"encoding/json"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Offer is a rank's message to a neighbour on its node that lets the neighbour write halo rows straight into the rank's
// memory.
type Offer struct {
	Rank   int                 `json:"rank"`
	Side   solver.Side         `json:"side"` // of the rank that offers
	Rows   solver.Stripe       `json:"rows"` // held in each field
	Pitch  int                 `json:"pitch"`
	Depth  int                 `json:"depth"`
	Fields [2]driver.IPCHandle `json:"fields"` // now first, as after Load
	Flags  driver.IPCHandle    `json:"flags"`
}

// flags is device memory with two 32-bit words for each side: the number of the newest exchange whose rows have come
// from the neighbour, and the number of the newest exchange for which the neighbour's halo is free.
//
// Two more words, one for each side, count the progress of a kernel that hands rows on; see direct.go.
const (
	flagStride = 128
	flagsBytes = 2 << 20 // an allocation of its own, so that a neighbour maps nothing else
)

func cameAt(side solver.Side) driver.DevicePtr { return driver.DevicePtr(int(side) * flagStride) }
func roomAt(side solver.Side) driver.DevicePtr { return driver.DevicePtr((2 + int(side)) * flagStride) }
func countAt(side solver.Side) driver.DevicePtr {
	return driver.DevicePtr((4 + int(side)) * flagStride)
}

// OpenFlags allocates the words that neighbours write. It must be called before Offer.
func (b *Backend) OpenFlags() (err error) {
	if b.flags, err = b.alloc(flagsBytes); err != nil {
		return err
	}
	if err := b.fast.Fill(b.flags, 0, flagsBytes); err != nil {
		return err
	}
	return b.fast.Synchronize()
}

// Offer returns the encoded Offer for the neighbour at a side.
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

// Peer is the path to a neighbour on the same node. This rank writes its edge rows into the neighbour's halo and then
// the number of the exchange into a word of the neighbour's memory, for which the neighbour's stream waits. No kernel
// waits, so ranks may share a GPU.
//
// If every pass ends in an exchange, the writer need not ask whether the halo is free: the halo for the rows of
// exchange n+2 was last read by edges that the neighbour swept before it posted exchange n+1, and this rank's stream
// has waited for the rows of exchange n+1. A halo deeper than a pass is read by the passes in between too; each rank
// then tells its neighbours when the halo of its next field has been read for the last time.
type Peer struct {
	*Backend
	side   solver.Side
	theirs [2]field         // the neighbour's fields; the first was its now when mine was this rank's now
	mine   driver.DevicePtr // base of the field that was now when Peer was opened
	words  driver.DevicePtr // the neighbour's flags
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

// allow tells the neighbour, after all earlier work of the stream, that the halo of next is free for the next exchange.
func (p *Peer) allow() error {
	if !p.deep() {
		return nil
	}
	return p.fast.WriteValue(p.words+roomAt(p.side.Opposite()), uint32(p.posted+1))
}

// rows returns the addresses of the neighbour's halo and of the edge of next that fills it.
func (p *Peer) rows() (to, from driver.DevicePtr) {
	theirs := p.theirs[1] // the neighbour's field that pairs with next
	if p.next.base == p.mine {
		theirs = p.theirs[0]
	}
	halo := theirs.rows.Lo // the upper halo comes first among the rows held, the lower one last
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

// release unblocks the streams of a backend that wait for a neighbour, so that the backend can be closed after a
// failure.
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
