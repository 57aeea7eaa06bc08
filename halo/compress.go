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

// With CompressAuto a link tries both ways in each round of full exchanges, those with as many bytes as the link
// allows: the first trialLength of them plain, the next ones packed. From then on each end packs if the neighbour's
// packed rows were there in at most 80% of the time of the plain ones. Both ends send full exchanges at the same time,
// so they try the same. A later round tries again: fields change, and so does the load of a network.
const (
	trialLength = 4
	trialRound  = 512
)

// choice decides which exchanges are packed.
type choice struct {
	mode Compress

	mu     sync.Mutex
	next   int                   // of the round: the next full exchange
	full   solver.ExchangeNumber // the last full exchange
	at     int                   // its place in the round
	posted time.Time             // when it was sent
	best   [2]time.Duration      // of the trial: plain and packed; 0: not known
	packs  bool                  // from the end of the trial on

	plain, packed atomic.Uint64 // bytes of rows that were packed, and of what became of them
}

// post reports whether the rows of exchange, which are sent now, are to be packed.
func (c *choice) post(exchange solver.ExchangeNumber, full bool, now time.Time) bool {
	if c.mode != CompressAuto {
		return c.mode == CompressAlways
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !full {
		return c.packs
	}
	c.full, c.at, c.posted, c.next = exchange, c.next, now, (c.next+1)%trialRound
	if c.at < 2*trialLength {
		return c.at >= trialLength
	}
	return c.packs
}

// arrived notes that the neighbour's rows of exchange were complete at a time.
func (c *choice) arrived(exchange solver.ExchangeNumber, at time.Time) {
	if c.mode != CompressAuto {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if exchange != c.full || c.at >= 2*trialLength || c.posted.IsZero() {
		return
	}
	travel := max(1, at.Sub(c.posted)) // rows that were there before have not kept this rank waiting
	if c.at == 0 {
		c.best = [2]time.Duration{}
	}
	// The shortest time has the least of the neighbour's delay in it.
	if best := &c.best[c.at/trialLength]; *best == 0 || travel < *best {
		*best = travel
	}
	if c.at == 2*trialLength-1 {
		c.packs = c.best[0] > 0 && c.best[1] <= c.best[0]*4/5
	}
}
