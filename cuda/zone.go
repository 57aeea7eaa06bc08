package cuda

import (
	"encoding/json"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// zone is the memory of a rank of multigrid into which the other ranks of its node write. It is an allocation of its
// own, so that they map nothing else:
//
//	32-bit words, flagStride bytes apart:
//	    came, by side       the number of the newest exchange whose rows have come from the neighbour there
//	    gathered, by rank   the number of the newest gather for which the rank has written its block
//	    count, by move      the progress of a kernel that writes; of this rank alone
//	rows, by side and parity of the exchange: those beside the stripe, on any level
//	right-hand sides, by parity of the gather: of a level that is gathered, with its pitch
//
// No word says what is free. Every exchange has all ranks write and then wait. Whoever writes for exchange n+2 has
// waited for exchange n+1, which the reader began after it had copied the rows of exchange n out of the zone.
type zone struct {
	base  driver.DevicePtr // 0 without memory
	ranks int
	rows  int // bytes of the rows of a side
	right int // bytes of a right-hand side
}

// newZone returns the zone of a rank with layout l of the finest mesh, without memory.
func newZone(l multigrid.Layout, ranks int) zone {
	tail := l.Plan.Levels[l.Tail].Mesh
	tail.DType = solver.Float64 // as the source of a stage of full multigrid has it
	return zone{ranks: ranks, rows: multigrid.Overlap * pitchOf(l.Plan.Levels[0].Mesh), right: tail.NY * pitchOf(tail)}
}

const (
	zonePage  = 4096
	zoneAlign = 2 << 20 // what the driver allocates at once
)

// words returns the bytes of the words.
func (z zone) words() int {
	return (flagStride*(2+z.ranks+mostMoves) + zonePage - 1) / zonePage * zonePage
}

func (z zone) bytes() int64 {
	n := int64(z.words()) + 4*int64(z.rows) + 2*int64(z.right)
	return (n + zoneAlign - 1) / zoneAlign * zoneAlign
}

func (z zone) word(i int) driver.DevicePtr            { return flags(z.base).word(i) }
func (z zone) came(side solver.Side) driver.DevicePtr { return z.word(int(side)) }
func (z zone) gathered(rank int) driver.DevicePtr     { return z.word(2 + rank) }
func (z zone) at(offset int) driver.DevicePtr         { return z.base + driver.DevicePtr(offset) }
func (z zone) rightOf(gather uint32) driver.DevicePtr {
	return z.at(z.words() + 4*z.rows + int(gather%2)*z.right)
}
func (z zone) rowsOf(side solver.Side, n uint32) driver.DevicePtr {
	return z.at(z.words() + (2*int(side)+int(n%2))*z.rows)
}

// count returns the word by which the blocks of a kernel count the i-th move of those that write.
func (z zone) count(i int) driver.DevicePtr { return z.word(2 + z.ranks + i%mostMoves) }

// ZoneBytes returns the bytes of GPU memory that OpenZone allocates.
func ZoneBytes(l multigrid.Layout, ranks int) int64 { return newZone(l, ranks).bytes() }

// ZoneOffer is a rank's message to others on its node that lets them write into its zone.
type ZoneOffer struct {
	Rank  int              `json:"rank"`
	Ranks int              `json:"ranks"`
	Rows  int              `json:"rows"`
	Right int              `json:"right"`
	Zone  driver.IPCHandle `json:"zone"`
}

// OpenZone allocates the memory into which other ranks write. It must be called before OfferZone.
func (v *Levels) OpenZone(ranks int) error {
	z := newZone(v.layout, ranks)
	base, err := v.dev.alloc(z.bytes())
	if err != nil {
		return fmt.Errorf("memory for the rows of other ranks: %w", err)
	}
	z.base = base
	if err := v.stream.Fill(base, 0, int(z.bytes())); err != nil {
		return err
	}
	v.zone = z
	return v.stream.Synchronize()
}

// OfferZone returns the encoded ZoneOffer.
func (v *Levels) OfferZone(rank int) ([]byte, error) {
	o := ZoneOffer{Rank: rank, Ranks: v.zone.ranks, Rows: v.zone.rows, Right: v.zone.right}
	var err error
	if o.Zone, err = v.dev.context.IPCHandle(v.zone.base); err != nil {
		return nil, fmt.Errorf("offer memory to other ranks: %w", err)
	}
	return json.Marshal(o)
}

// ZonePeer is the mapped zone of another rank on the same node.
type ZonePeer struct {
	context *driver.Context // nil if the zone is of this process
	zone    zone
}

// OpenZonePeer maps the zone that another rank offers.
func (v *Levels) OpenZonePeer(offer []byte) (*ZonePeer, error) {
	var o ZoneOffer
	if err := json.Unmarshal(offer, &o); err != nil {
		return nil, fmt.Errorf("offer of a zone: %w", err)
	}
	z := v.zone
	if o.Ranks != z.ranks || o.Rows != z.rows || o.Right != z.right {
		return nil, fmt.Errorf("zone of rank %d: %d ranks, %d and %d bytes; want %d, %d, %d", o.Rank, o.Ranks, o.Rows,
			o.Right, z.ranks, z.rows, z.right)
	}
	var err error
	if z.base, err = v.dev.context.OpenIPC(o.Zone); err != nil {
		return nil, fmt.Errorf("map the memory of rank %d: %w", o.Rank, err)
	}
	return &ZonePeer{context: v.dev.context, zone: z}, nil
}

// Close unmaps the zone.
func (p *ZonePeer) Close() error {
	if p.context == nil {
		return nil
	}
	if err := p.context.CloseIPC(p.zone.base); err != nil {
		return fmt.Errorf("unmap the memory of another rank: %w", err)
	}
	return nil
}
