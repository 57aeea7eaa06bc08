package cpu

import "jacobi/internal/cpu/kernel"

// plan is the shape of a pass of a number of sweeps. A thread takes its rows window by window; in a window it goes down
// in bands of rows and, in a band, from left to right in chunks of blocks, and does all sweeps in a chunk before the
// next chunk. Each sweep lags the one before by one row and one block, because it reads one row and one column beyond.
// The rows between two sweeps live in a ring that stays in the cache, however tall the stripe is.
type plan struct {
	sweeps     int
	window     int // blocks that a window yields, at most
	overlap    int // blocks that the sweeps before the last do in addition on each side of a window
	ringRows   int // rows in the ring
	ringStride int // bytes
	accStride  int // bytes from one sweep's running group sums to the next one's
}

// chunkColumns is the width of a chunk: what a sweep reads and writes in it fits the innermost cache.
const chunkColumns = 512

// newPlan finds the widest windows whose scratch fits in cache bytes.
func newPlan(l rowLayout, sweeps, cache int) plan {
	p := plan{sweeps: sweeps, window: l.blocks}
	p.overlap = ceilDiv(sweeps-1, 4*l.lanes)
	if sweeps > 1 {
		p.ringRows = 2*sweeps + kernel.Rows
	}
	columns := p.ringRows*l.blockBytes() + sweeps*l.vectorBytes() // bytes for each block of width
	if fit := cache/columns - 2*p.overlap; fit < l.blocks {
		p.window = ceilDiv(l.blocks, ceilDiv(l.blocks, max(fit, leastWindow*p.overlap, 1)))
	}
	width := min(p.window+2*p.overlap, l.blocks)
	p.ringStride = paddedStride(width * l.blockBytes())
	p.accStride = ceilDiv(width*l.vectorBytes(), cacheLine)*cacheLine + cacheLine
	return p
}

// leastWindow is the least width of a window in overlaps: below it the overlap costs more than the cache gives.
const leastWindow = 8

const cacheLine = 64

// The parts of a thread's scratch: ring, group sums, carried vectors.
func (p plan) ringBytes() int  { return p.ringRows*p.ringStride + cacheLine }
func (p plan) accBytes() int   { return p.sweeps * p.accStride }
func (p plan) carryBytes() int { return p.sweeps * kernel.Rows * cacheLine }
func (p plan) bytes() int      { return p.ringBytes() + p.accBytes() + p.carryBytes() }
