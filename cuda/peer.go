package cuda

import (
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
	Fields [2]driver.IPCHandle `json:"fields"` // by index
	Flags  driver.IPCHandle    `json:"flags"`
}

// OpenFlags allocates the words that neighbours write. It must be called before Offer.
func (b *Backend) OpenFlags() error { return b.dev.openFlags() }

// Offer returns the encoded Offer for the neighbour at a side.
func (b *Backend) Offer(rank int, side solver.Side) ([]byte, error) {
	d := b.dev
	o := Offer{Rank: rank, Side: side, Rows: d.now.rows, Pitch: d.now.pitch, Depth: d.layout.Depth}
	var err error
	for _, f := range []field{d.now, d.next} {
		if o.Fields[f.index], err = d.context.IPCHandle(f.base); err != nil {
			return nil, fmt.Errorf("offer a field to the neighbour: %w", err)
		}
	}
	if o.Flags, err = d.context.IPCHandle(driver.DevicePtr(d.flags)); err != nil {
		return nil, fmt.Errorf("offer flags to the neighbour: %w", err)
	}
	return json.Marshal(o)
}

// Peer is the mapped memory of a neighbour on the same node.
type Peer struct {
	context *driver.Context
	side    solver.Side // at which the neighbour lies
	depth   int
	theirs  [2]field // by index
	words   flags    // the neighbour's
	mapped  []driver.DevicePtr
}

// OpenPeer maps the memory that the neighbour at a side offers.
func (b *Backend) OpenPeer(side solver.Side, offer []byte) (p *Peer, err error) {
	d := b.dev
	var o Offer
	if err := json.Unmarshal(offer, &o); err != nil {
		return nil, fmt.Errorf("offer of the neighbour: %w", err)
	}
	if o.Depth != d.layout.Depth || o.Pitch != d.now.pitch || o.Side != side.Opposite() {
		return nil, fmt.Errorf("offer of rank %d: depth %d, pitch %d, %v side; want %d, %d, %v", o.Rank, o.Depth,
			o.Pitch, o.Side, d.layout.Depth, d.now.pitch, side.Opposite())
	}
	p = &Peer{context: d.context, side: side, depth: o.Depth}
	defer func() {
		if err != nil {
			_ = p.Close() // the first error counts
			p = nil
		}
	}()
	for i, h := range o.Fields {
		base, err := d.context.OpenIPC(h)
		if err != nil {
			return p, fmt.Errorf("map the memory of rank %d: %w", o.Rank, err)
		}
		p.mapped = append(p.mapped, base)
		p.theirs[i] = field{base: base, rows: o.Rows, pitch: o.Pitch, index: i}
	}
	words, err := d.context.OpenIPC(o.Flags)
	if err != nil {
		return p, fmt.Errorf("map the flags of rank %d: %w", o.Rank, err)
	}
	p.mapped = append(p.mapped, words)
	p.words = flags(words)
	return p, nil
}

// halo returns the address of the neighbour's halo that this rank's edge fills, in the field with the given index.
func (p *Peer) halo(index int) driver.DevicePtr {
	theirs := p.theirs[index]
	first := theirs.rows.Lo // the upper halo comes first among the rows held, the lower one last
	if p.side == solver.Top {
		first = theirs.rows.Hi - p.depth
	}
	return theirs.at(first)
}

// came is the neighbour's word that says which rows of this rank have come.
func (p *Peer) came() driver.DevicePtr { return p.words.came(p.side.Opposite()) }

// room is the neighbour's word that says for which exchange this rank's halo is free.
func (p *Peer) room() driver.DevicePtr { return p.words.room(p.side.Opposite()) }

// loaded is the neighbour's word that says how many fields this rank has loaded.
func (p *Peer) loaded() driver.DevicePtr { return p.words.loaded(p.side.Opposite()) }

// Close unmaps the neighbour's memory.
func (p *Peer) Close() error {
	for _, m := range p.mapped {
		if err := p.context.CloseIPC(m); err != nil {
			return fmt.Errorf("unmap the memory of a neighbour: %w", err)
		}
	}
	return nil
}
