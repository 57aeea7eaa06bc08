package halo

import (
	"errors"
	"fmt"
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
	CompressAuto   Compress = "auto" // where a rank gets from one exchange to the next faster with it
	CompressAlways Compress = "always"
)

// With CompressAuto a link tries both ways in each round of full exchanges, those with as many bytes as the link
// allows: the first trialLength of them plain, the next ones packed. From then on it packs if the shortest time for
// two packed exchanges, with all that a rank does meanwhile, was at most trialGain times that for two plain ones. The
// travel time of rows alone would mislead: sweeps hide it, and packing takes processor time from them. The lead of a
// rank over its neighbour lengthens one exchange and shortens the next, and so cancels out of two. All links of a rank
// try the same at the same time, and so do both ends of a link, but for the gathers of multigrid. A later round tries
// again: fields change, and so does the load of a network.
const (
	trialLength = 5
	trialRound  = 512
	trialGain   = 0.97
)

// choice decides which exchanges are packed.
type choice struct {
	mode   Compress
	next   int              // of the round: the next full exchange
	posted [2]time.Time     // when the last two full exchanges were sent
	best   [2]time.Duration // of the trial: of two plain exchanges and of two packed ones; 0: not known
	packs  bool             // from the end of the trial on

	plain, packed atomic.Uint64 // bytes of rows that were packed, and of what became of them
}

// post reports whether the rows of an exchange, which are sent now, are to be packed. Calls do not overlap.
func (c *choice) post(full bool, now time.Time) bool {
	switch {
	case c.mode != CompressAuto:
		return c.mode == CompressAlways
	case !full:
		return c.packs
	}
	at := c.next
	// The first exchange of each kind may still have waited for one of the other kind.
	if last := at - 1; last < 2*trialLength && last%trialLength > 1 {
		if best, took := &c.best[last/trialLength], now.Sub(c.posted[0]); *best == 0 || took < *best {
			*best = took
		}
	}
	switch at {
	case 0:
		c.best = [2]time.Duration{}
	case 2 * trialLength:
		c.packs = float64(c.best[1]) <= trialGain*float64(c.best[0])
	}
	c.posted, c.next = [2]time.Time{c.posted[1], now}, (at+1)%trialRound
	if at < 2*trialLength {
		return at >= trialLength
	}
	return c.packs
}
