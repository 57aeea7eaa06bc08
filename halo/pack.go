package halo

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"

	"jacobi/solver"
)

// packer makes rows smaller, without loss. In a smooth field the bits of a value, taken as an integer, differ little
// from a straight line through the two values before it. What they differ by, with the sign in the lowest bit, is
// divided into planes: first the lowest byte of all values, last the highest. The high planes are then mostly 0, and
// s2 codes them with few bytes. A packer serves one goroutine.
type packer struct{ planes []byte }

// pack appends the packed rows to dst. Their length need not be a multiple of a value's.
func (p *packer) pack(dst, rows []byte, dtype solver.DType) []byte {
	planes := room(&p.planes, len(rows))
	n := len(rows) / dtype.Size()
	copy(planes[n*dtype.Size():], rows[n*dtype.Size():])
	if dtype == solver.Float32 {
		divide32(planes, rows, n)
	} else {
		divide64(planes, rows, n)
	}
	at, most := len(dst), s2.MaxEncodedLen(len(rows))
	if cap(dst)-at < most {
		dst = append(make([]byte, 0, at+most), dst...)
	}
	return dst[:at+len(s2.Encode(dst[at:at+most], planes))]
}

// unpack fills rows from packed, which pack has made of rows of the same length. It returns an error if packed is
// broken or says another length, and reserves no memory for that.
func (p *packer) unpack(rows, packed []byte, dtype solver.DType) error {
	length, err := s2.DecodedLen(packed)
	if err != nil {
		return fmt.Errorf("packed rows: %w", err)
	}
	if err := mismatch("bytes of packed rows", length, len(rows)); err != nil {
		return err
	}
	planes, err := s2.Decode(room(&p.planes, len(rows)), packed)
	if err == nil && len(planes) != len(rows) {
		err = errors.New("decoded to another length")
	}
	if err != nil {
		return fmt.Errorf("packed rows: %w", err)
	}
	n := len(rows) / dtype.Size()
	copy(rows[n*dtype.Size():], planes[n*dtype.Size():])
	if dtype == solver.Float32 {
		join32(rows, planes, n)
	} else {
		join64(rows, planes, n)
	}
	return nil
}

// room returns the first n bytes of the memory of buf, which it makes larger if need be.
func room(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	return (*buf)[:n]
}

// packing is the memory of a goroutine that packs or unpacks the parts of frames.
type packing struct {
	packer packer
	frame  []byte
}

// Compress says whether a link over NATS or TCP packs rows.
type Compress string

// The values of Compress.
const (
	CompressNever  Compress = "never"
	CompressAuto   Compress = "auto" // where exchanges are faster with it
	CompressAlways Compress = "always"
)

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
