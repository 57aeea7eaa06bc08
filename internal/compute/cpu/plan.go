package cpu

import (
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// plan describes how a thread does a pass of a given number of sweeps. A thread divides its columns into tiles and
// does one tile after another. In a tile it goes down in bands of rows. In a band it goes from left to right in
// chunks of blocks, and does all sweeps of a chunk before the next chunk. Each sweep lags the previous one by one row
// and one block, because it reads one row and one column beyond its own. The rows between two sweeps live in a ring
// that stays in the cache, however high the stripe is.
type plan struct {
	sweeps     int
	tile       int // width of a tile in blocks, at most
	overlap    int // blocks on each side of a tile that all sweeps but the last do in addition
	ringRows   int // rows in the ring
	ringStride int // bytes
	accStride  int // bytes of running sums of a row of norm groups; each sweep has two
}

// chunkColumns is the width of a chunk. Narrower chunks leave more of the first-level cache free and take more calls.
const chunkColumns = 768

// newPlan returns the plan with the widest tiles whose scratch fits in cache bytes, together with the rows of a band
// that all its sweeps read, such as the source. Each block of such a row takes constant bytes.
func newPlan(l rowLayout, sweeps, cache, constant int) plan {
	p := plan{sweeps: sweeps, tile: l.blocks}
	p.overlap = ceilDiv(sweeps-1, 4*l.lanes)
	if sweeps > 1 {
		p.ringRows = 2*sweeps + kernel.Rows
	}
	columns := p.ringRows*l.blockBytes() + 2*sweeps*l.vectorBytes() // bytes for each block of width
	columns += (sweeps + kernel.Rows) * constant
	if fit := cache/columns - 2*p.overlap; fit < l.blocks {
		p.tile = ceilDiv(l.blocks, ceilDiv(l.blocks, max(fit, minTile*p.overlap, 1)))
	}
	width := min(p.tile+2*p.overlap, l.blocks)
	p.ringStride = l.strideOf(width)
	p.accStride = ceilDiv(width*l.vectorBytes(), cacheLine)*cacheLine + cacheLine
	return p
}

// minTile is the smallest width of a tile, in overlaps. In narrower tiles the overlap costs more than the cache
// saves.
const minTile = 8

const cacheLine = 64

// A thread's scratch consists of the ring, the running group sums and the carried vectors.
func (p plan) ringBytes() int  { return p.ringRows*p.ringStride + cacheLine }
func (p plan) accBytes() int   { return 2 * p.sweeps * p.accStride }
func (p plan) carryBytes() int { return p.sweeps * kernel.Rows * cacheLine }
func (p plan) bytes() int      { return p.ringBytes() + p.accBytes() + p.carryBytes() }

// newPlans returns the plans for a layout, indexed by the number of sweeps, and the largest scratch in bytes that any
// of them needs.
func newPlans(l solver.Layout, columns rowLayout, cache int) (plans []plan, scratch int) {
	if l.Operator.Weighted {
		cache *= 3 // the next level gives the rest fast enough, and wider tiles repeat fewer columns
	}
	// Bytes for each block of a row that sweeps read besides the field.
	constant := l.Operator.ValuesPerPoint() * columns.blockBytes()
	if l.Operator.Fixed != nil {
		constant += columns.maskBytes()
	}
	for t := range min(MaxSweeps(l.Mesh), max(minMaxSweeps, l.Depth)) + 1 {
		plans = append(plans, newPlan(columns, max(t, 1), cache, constant))
		scratch = max(scratch, plans[t].bytes())
	}
	return plans, scratch
}
