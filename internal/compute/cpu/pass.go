package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// Edges implements solver.Backend.
func (b *Backend) Edges(ctx context.Context, p solver.Pass) error {
	if err := b.check(p); err != nil {
		return err
	}
	b.resetSums()
	b.middle = b.layout.Middle()
	if b.sweepAll {
		b.middle = solver.Stripe{Lo: b.layout.Stripe.Hi, Hi: b.layout.Stripe.Hi}
	}
	edges := []solver.Stripe{{Lo: b.layout.Stripe.Lo, Hi: b.middle.Lo}, {Lo: b.middle.Hi, Hi: b.layout.Stripe.Hi}}
	if b.middle.Rows() == 0 {
		edges = b.split(b.layout.Stripe)
	}
	b.edged = true
	return b.sweep(ctx, p, edges)
}

// check returns an error for a pass that this backend cannot do.
func (b *Backend) check(p solver.Pass) error {
	if err := b.layout.CheckPass(p, len(b.plans)-1); err != nil {
		return fmt.Errorf("cpu backend: %w", err)
	}
	return nil
}

// Interior implements solver.Backend.
func (b *Backend) Interior(ctx context.Context, p solver.Pass) error {
	if err := b.check(p); err != nil {
		return err
	}
	rows := b.middle
	if !b.edged {
		b.resetSums()
		rows = b.layout.Reach(p.Margin)
	}
	if err := b.sweep(ctx, p, b.split(rows)); err != nil {
		return err
	}
	b.now, b.next, b.edged = b.next, b.now, false
	return nil
}

// Sums implements solver.Backend.
func (b *Backend) Sums(_ context.Context, p solver.Pass) ([]solver.Sum, error) {
	b.sums = b.sums[:0]
	for level := range p.Sweeps {
		if !b.layout.Norms.Has(p.First + level) {
			continue
		}
		var sum solver.Sum
		for _, w := range b.pool.workers {
			sum.Merge(w.sums[level].Total())
		}
		b.sums = append(b.sums, sum)
	}
	return b.sums, nil
}

// Undo implements solver.Backend.
func (b *Backend) Undo() error {
	b.now, b.next = b.next, b.now
	return nil
}

// resetSums sets the sums of a new pass to 0.
func (b *Backend) resetSums() {
	for _, w := range b.pool.workers {
		for i := range w.sums {
			w.sums[i].Reset()
		}
	}
}

// sweep computes the rows of the parts. Within the stripe parts begin and end at the bounds of norm groups.
func (b *Backend) sweep(ctx context.Context, p solver.Pass, parts []solver.Stripe) error {
	// Passes of a single sweep alternate between downward and upward, so each begins with the rows that the previous
	// one left in the cache.
	upward := p.Sweeps == 1 && p.First%2 == 1
	var jobs []job
	for _, rows := range parts {
		if rows.Rows() > 0 {
			jobs = append(jobs, job{rows: rows, right: b.columns.blocks, upward: upward, pass: p})
		}
	}
	if n := len(b.pool.workers) / max(len(jobs), 1); n > 1 {
		jobs = b.splitColumns(jobs, n)
	}
	if err := b.pool.each(len(jobs), func(w *worker, i int) error {
		return w.pass(ctx, b.plans[p.Sweeps], jobs[i])
	}); err != nil {
		return err
	}
	b.repeatColumns(parts)
	return nil
}

// repeatColumns sets the columns of next that repeat others, in the rows of the parts.
func (b *Backend) repeatColumns(parts []solver.Stripe) {
	if !b.columns.periodic && !b.columns.mirrored {
		return
	}
	for _, rows := range parts {
		for y := rows.Lo; y < rows.Hi; y++ {
			b.columns.repeat(b.next.row(y))
		}
	}
}

// splitColumns splits each job into at most n jobs side by side.
func (b *Backend) splitColumns(jobs []job, n int) []job {
	width := max(ceilDiv(b.columns.blocks, n), ceilDiv(minSplitColumns, 4*b.columns.lanes))
	var split []job
	for _, j := range jobs {
		for x := 0; x < b.columns.blocks; x += width {
			split = append(split, job{rows: j.rows, left: x, right: min(x+width, b.columns.blocks), upward: j.upward,
				pass: j.pass})
		}
	}
	return split
}

// minSplitColumns is the smallest number of columns in such a job.
const minSplitColumns = 512

// split divides rows among the threads at the bounds of norm groups. It returns at least one part.
func (b *Backend) split(rows solver.Stripe) []solver.Stripe {
	n := len(b.pool.workers)
	parts := make([]solver.Stripe, 0, n)
	lo := rows.Lo
	for i := range n {
		hi := floorMultiple(rows.Lo+rows.Rows()*(i+1)/n, solver.GroupRows)
		if i == n-1 || hi >= b.layout.Stripe.Hi {
			hi = rows.Hi // halo rows below the stripe belong to the last part, those above it to the first
		}
		if hi > max(lo, b.layout.Stripe.Lo) {
			parts = append(parts, solver.Stripe{Lo: lo, Hi: hi})
			lo = hi
		}
	}
	if len(parts) == 0 {
		parts = append(parts, rows)
	}
	return parts
}

// carryIn gives a task the vectors to the left of its range. The first level takes them from now, the last level from
// the overlap. The levels between have none: their wrong values at the end of the overlap spread by one column a sweep
// and do not leave the overlap.
func (w *windowPass) carryIn(t *task, block int) {
	if t.level != 1 && t.level != w.sweeps {
		return
	}
	n := w.vectorBytes
	for r := range t.Rows {
		from := unsafe.Add(t.Src[r+1], (block-w.outerLeft)*w.blockBytes-n)
		copy(unsafe.Slice((*byte)(unsafe.Add(t.Carry, r*n)), n), unsafe.Slice((*byte)(from), n))
	}
}

// do runs a task on blocks [from, to).
func (w *windowPass) do(t *task, from, to int) {
	if w.walled {
		w.mirrorColumns(t, from, to)
	}
	if masked := t.masked.within(from, to); masked.lo < masked.hi {
		w.unmasked(t, from, masked.lo)
		w.call(w.function(t, &w.b.functions.Masked), t, masked.lo, masked.hi-masked.lo)
		w.unmasked(t, masked.hi, to)
	} else {
		w.unmasked(t, from, to)
	}
	from, to = max(from, w.left), min(to, w.right)
	for i, rows := range t.complete {
		if rows > 0 && from < to {
			acc := unsafe.Add(t.Acc, i*t.AccNext+(from-w.outerLeft)*w.vectorBytes)
			w.b.kernel.Collect(&w.sums[t.level-1], acc, (to-from)*w.b.kernel.Lanes, rows)
		}
	}
}

// unmasked runs a task on blocks [from, to). Only the first and the last block of a row may hold points that are not
// swept.
func (w *windowPass) unmasked(t *task, from, to int) {
	if from >= to {
		return
	}
	x, end, blocks := from, to, w.b.columns.blocks
	if x == 0 {
		w.call(w.b.functions.Masked.Sweep, t, x, 1)
		x++
	}
	if end == blocks && blocks > 1 {
		end--
	}
	if x < end {
		whole := &w.b.functions.Whole
		if !t.normed {
			whole = &w.b.functions.Bare
		}
		w.call(w.function(t, whole), t, x, end-x)
	}
	if end < to {
		w.call(w.b.functions.Masked.Sweep, t, end, 1)
	}
}

// function returns the one of p that suits the level of a task.
func (w *windowPass) function(t *task, p *kernel.Pair) func(*kernel.Span) {
	if t.level == w.sweeps && w.b.stream {
		return p.Stream
	}
	return p.Sweep
}

func (w *windowPass) call(f func(*kernel.Span), t *task, block, blocks int) {
	t.Off = (block - w.outerLeft) * w.blockBytes
	t.AccOff = (block - w.outerLeft) * w.vectorBytes
	t.SweptOff = (block - w.outerLeft) * w.maskBytes
	t.Blocks = blocks
	f(&t.Span)
}

// plan describes how a thread does a pass of a given number of sweeps. A thread divides its columns into windows and
// does one window after another. In a window it goes down in bands of rows. In a band it goes from left to right in
// chunks of blocks, and does all sweeps of a chunk before the next chunk. Each sweep lags the previous one by one row
// and one block, because it reads one row and one column beyond its own. The rows between two sweeps live in a ring
// that stays in the cache, however high the stripe is.
type plan struct {
	sweeps     int
	window     int // width of a window in blocks, at most
	overlap    int // blocks on each side of a window that all sweeps but the last do in addition
	ringRows   int // rows in the ring
	ringStride int // bytes
	accStride  int // bytes of running sums of a row of norm groups; each sweep has two
}

// chunkColumns is the width of a chunk. Narrower chunks leave more of the first-level cache free and take more calls.
const chunkColumns = 768

// newPlan returns the plan with the widest windows whose scratch fits in cache bytes, together with the rows of a band
// that all its sweeps read, such as the source. Each block of such a row takes constant bytes.
func newPlan(l rowLayout, sweeps, cache, constant int) plan {
	p := plan{sweeps: sweeps, window: l.blocks}
	p.overlap = ceilDiv(sweeps-1, 4*l.lanes)
	if sweeps > 1 {
		p.ringRows = 2*sweeps + kernel.Rows
	}
	columns := p.ringRows*l.blockBytes() + 2*sweeps*l.vectorBytes() // bytes for each block of width
	columns += (sweeps + kernel.Rows) * constant
	if fit := cache/columns - 2*p.overlap; fit < l.blocks {
		p.window = ceilDiv(l.blocks, ceilDiv(l.blocks, max(fit, minWindow*p.overlap, 1)))
	}
	width := min(p.window+2*p.overlap, l.blocks)
	p.ringStride = l.strideOf(width)
	p.accStride = ceilDiv(width*l.vectorBytes(), cacheLine)*cacheLine + cacheLine
	return p
}

// minWindow is the smallest width of a window, in overlaps. In narrower windows the overlap costs more than the cache
// saves.
const minWindow = 8

const cacheLine = 64

// A thread's scratch consists of the ring, the running group sums and the carried vectors.
func (p plan) ringBytes() int  { return p.ringRows*p.ringStride + cacheLine }
func (p plan) accBytes() int   { return 2 * p.sweeps * p.accStride }
func (p plan) carryBytes() int { return p.sweeps * kernel.Rows * cacheLine }
func (p plan) bytes() int      { return p.ringBytes() + p.accBytes() + p.carryBytes() }
