package halo

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/solver"
)

// Compress says whether a link over NATS or TCP packs rows.
type Compress string

// The values of Compress.
const (
	CompressNever  Compress = "never"
	CompressAuto   Compress = "auto" // where exchanges are faster with it
	CompressAlways Compress = "always"
)

// ParseCompress returns the Compress called name.
func ParseCompress(name string) (Compress, error) {
	switch c := Compress(name); c {
	case CompressNever, CompressAuto, CompressAlways:
		return c, nil
	}
	return "", fmt.Errorf("halo.compress %q: allowed are auto, never and always", name)
}

// With CompressAuto a link tries both ways in each round of exchanges: the first trialLength of them plain, the next
// ones packed. From then on each end packs if the neighbour's packed rows were there in at most 80% of the time of the
// plain ones. The number of the exchange decides, so both ends try the same at the same time. A later round tries
// again: fields change, and so does the load of a network.
const (
	trialLength = 4
	trialRound  = 512
)

// choice decides which exchanges are packed.
type choice struct {
	mode   Compress
	posted atomic.Pointer[time.Time] // the last call of Send

	mu    sync.Mutex
	best  [2]time.Duration // of the trial: plain and packed; 0: not known
	packs bool             // from the end of the trial on

	plain, packed atomic.Uint64 // bytes of rows that were packed, and of what became of them
}

// pack reports whether the rows of exchange are to be packed.
func (c *choice) pack(exchange solver.ExchangeNumber) bool {
	at := exchange % trialRound
	switch {
	case c.mode != CompressAuto:
		return c.mode == CompressAlways
	case at < 2*trialLength:
		return at >= trialLength
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.packs
}

// arrived notes that the neighbour's rows of exchange were complete at a time.
func (c *choice) arrived(exchange solver.ExchangeNumber, at time.Time) {
	posted, n := c.posted.Load(), exchange%trialRound
	if c.mode != CompressAuto || posted == nil || n >= 2*trialLength {
		return
	}
	travel := max(1, at.Sub(*posted)) // rows that were there before have not kept this rank waiting
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == 0 {
		c.best = [2]time.Duration{}
	}
	// The shortest time has the least of the neighbour's delay in it.
	if best := &c.best[n/trialLength]; *best == 0 || travel < *best {
		*best = travel
	}
	if n == 2*trialLength-1 {
		c.packs = c.best[0] > 0 && c.best[1] <= c.best[0]*4/5
	}
}

// frame returns the frame of part i of the rows in slot, packed if the exchange is to be packed and that makes it
// smaller. Its memory is that of the lane.
func (l *NATSLink) frame(a *lane, slot *outSlot, i int) []byte {
	if f, packed := a.part(l, slot, i); packed {
		f.encode(a.frame, a.frame[headerSize:])
	} else {
		a.frame = l.out.frame(slot, i, a.frame)
	}
	return a.frame
}

// packing is the memory of a goroutine that packs what it sends.
type packing struct {
	packer packer
	frame  []byte
}

// part packs part i of the rows in slot into frame, behind room for the header that it returns. It returns false if the
// exchange is to be sent plain, and if packing does not make the part smaller.
func (p *packing) part(l *NATSLink, slot *outSlot, i int) (frame, bool) {
	if !l.choice.pack(slot.exchange) {
		return frame{}, false
	}
	f, rows := l.out.part(slot, i)
	if cap(p.frame) < headerSize {
		p.frame = make([]byte, headerSize)
	}
	p.frame = p.packer.pack(p.frame[:headerSize], rows, l.end.DType)
	packed := len(p.frame) - headerSize
	if packed >= len(rows) {
		return frame{}, false
	}
	f.kind = kindPacked
	l.choice.plain.Add(uint64(len(rows)))
	l.choice.packed.Add(uint64(packed))
	return f, true
}
