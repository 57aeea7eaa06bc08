package cpu

import (
	"context"
	"unsafe"

	"jacobi/internal/cpu/kernel"
	"jacobi/solver"
)

// worker is what one thread needs to sweep: scratch of its own and the sums that it gathers.
type worker struct {
	b       *Backend
	scratch memory
	sums    []kernel.Collector // by sweep of the pass
	tasks   []task             // of the band at hand, in the order of sweeps
}

// job is a part of a pass: rows after all sweeps, and the blocks of columns [left, right) of them.
type job struct {
	rows        solver.Stripe
	left, right int
	upward      bool // from the lowest band to the topmost; for single sweeps
}

// task is what one sweep does in a band between two ends of norm groups.
type task struct {
	kernel.Span
	level     int  // 1 for the first sweep of the pass
	collect   bool // the groups are complete after it and count
	groupRows int  // then the rows that they have
}

// pass does the job window by window.
func (w *worker) pass(ctx context.Context, p plan, j job) error {
	for x := j.left; x < j.right; x += p.window {
		s := stream{worker: w, plan: p, rows: j.rows, left: x, right: min(x+p.window, j.right), upward: j.upward}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stream is a pass down one window. Level k is the field after k sweeps of the pass: level 0 is now, the
// last one next, those between are in the ring.
type stream struct {
	*worker
	plan
	rows        solver.Stripe // at the last level
	left, right int           // blocks at the last level
	outerLeft   int           // blocks at the levels before
	outerRight  int
	upward      bool          // as in job
	counted     solver.Stripe // rows whose norm counts here, at every level
	vectorBytes int
	blockBytes  int
}

func (s *stream) run(ctx context.Context) error {
	s.vectorBytes, s.blockBytes = s.b.columns.vectorBytes(), s.b.columns.blockBytes()
	s.outerLeft = max(0, s.left-s.overlap)
	s.outerRight = min(s.b.columns.blocks, s.right+s.overlap)
	s.counted = solver.Stripe{Lo: max(s.rows.Lo, s.b.layout.Stripe.Lo), Hi: min(s.rows.Hi, s.b.layout.Stripe.Hi)}
	// Level k does rows [top-k, top-k+kernel.Rows) of the band at top; a band of the first level is a row group.
	top := floorMultiple(s.rows.Lo-s.sweeps+1, kernel.Rows) + 1
	bands := ceilDiv(s.rows.Hi+s.sweeps-top, kernel.Rows)
	for i := range bands {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.upward {
			i = bands - 1 - i
		}
		s.tasks = s.tasks[:0]
		for level := 1; level <= s.sweeps; level++ {
			s.planLevel(level, top+i*kernel.Rows-level)
		}
		s.band()
	}
	return nil
}

// planLevel appends the tasks of a level for the band of rows that begins at y.
func (s *stream) planLevel(level, y int) {
	first := max(s.rows.Lo-(s.sweeps-level), s.b.sweepable.Lo)
	end := min(s.rows.Hi+(s.sweeps-level), s.b.sweepable.Hi, y+kernel.Rows)
	for y = max(y, first); y < end; {
		next := min(end, s.groupEnd(y))
		s.tasks = append(s.tasks, task{})
		t := &s.tasks[len(s.tasks)-1]
		t.level = level
		t.collect = s.groupEnd(next-1) == next && y >= s.counted.Lo && next <= s.counted.Hi
		t.groupRows = next - max(s.counted.Lo, floorMultiple(y, solver.GroupRows))
		if y == first || s.groupEnd(y-1) == y {
			t.Restart = 1
		}
		t.Rows = next - y
		s.place(t.Src[:t.Rows+2], level-1, y-1)
		s.place(t.Dst[:t.Rows], level, y)
		p := unsafe.Add(s.scratch.pointer(), s.ringBytes())
		t.Acc = unsafe.Add(p, (level-1)*s.accStride)
		place := mod(y+level-1, kernel.Rows) // in the band
		t.Carry = unsafe.Add(p, s.accBytes()+(level-1)*kernel.Rows*cacheLine+place*s.vectorBytes)
		y = next
	}
}

// groupEnd returns the end of the group sums that row y belongs to. Rows that do not count are kept apart from those
// that do.
func (s *stream) groupEnd(y int) int {
	end := floorMultiple(y, solver.GroupRows) + solver.GroupRows
	if y < s.counted.Lo {
		end = min(end, s.counted.Lo)
	} else if y < s.counted.Hi {
		end = min(end, s.counted.Hi)
	}
	return end
}

// place finds rows y, y+1, ... of a level, at block outerLeft. Rows that are never swept are the same at all levels.
// The ring slides: a row takes the place of the row above it of the level before, which is of no use any more.
func (s *stream) place(rows []unsafe.Pointer, level, y int) {
	offset := s.outerLeft * s.blockBytes
	if level == 0 || level == s.sweeps {
		f := s.b.now
		if level != 0 {
			f = s.b.next
		}
		for i := range rows {
			rows[i] = unsafe.Add(f.row(y+i), offset)
		}
		return
	}
	slot := mod(y+s.sweeps-level, s.ringRows)
	for i := range rows {
		if y+i < s.b.sweepable.Lo || y+i >= s.b.sweepable.Hi {
			rows[i] = unsafe.Add(s.b.now.row(y+i), offset)
		} else {
			rows[i] = unsafe.Add(s.scratch.pointer(), slot*s.ringStride)
		}
		if slot++; slot == s.ringRows {
			slot = 0
		}
	}
}

// band runs the tasks chunk by chunk.
func (s *stream) band() {
	chunk := max(1, chunkColumns/(4*s.b.columns.lanes))
	if s.sweeps == 1 {
		chunk = s.right - s.outerLeft // nothing of a chunk is used again
	}
	for x := s.outerLeft; x-(s.sweeps-1) < s.right; x += chunk {
		for i := range s.tasks {
			t := &s.tasks[i]
			left, right := s.outerLeft, s.outerRight
			if t.level == s.sweeps {
				left, right = s.left, s.right
			}
			lag := t.level - 1
			if from, to := max(left, x-lag), min(right, x+chunk-lag); from < to {
				if from == left && left > 0 {
					s.carryIn(t, from)
				}
				s.do(t, from, to)
			}
		}
	}
}

// carryIn gives a task the vectors left of its window. Left of the overlap they matter only at the first level: what is
// wrong beyond spreads one column a sweep and does not leave the overlap.
func (s *stream) carryIn(t *task, block int) {
	if t.level != 1 && t.level != s.sweeps {
		return
	}
	n := s.vectorBytes
	for r := range t.Rows {
		from := unsafe.Add(t.Src[r+1], (block-s.outerLeft)*s.blockBytes-n)
		copy(unsafe.Slice((*byte)(unsafe.Add(t.Carry, r*n)), n), unsafe.Slice((*byte)(from), n))
	}
}

// do runs a task on blocks [from, to).
func (s *stream) do(t *task, from, to int) {
	k := &s.b.kernel
	x, end, blocks := from, to, s.b.columns.blocks
	if x == 0 {
		t.Masks = s.b.firstMask()
		s.call(k.Edge, t, x, 1)
		x++
	}
	if end == blocks && blocks > 1 {
		end--
	}
	if x < end {
		sweep := k.Sweep
		if t.level == s.sweeps && s.b.stream {
			sweep = k.Stream
		}
		s.call(sweep, t, x, end-x)
	}
	if end < to {
		t.Masks = s.b.lastMask()
		s.call(k.Edge, t, end, 1)
	}
	if t.collect {
		if from, to = max(from, s.left), min(to, s.right); from < to {
			acc := unsafe.Add(t.Acc, (from-s.outerLeft)*s.vectorBytes)
			k.Collect(&s.sums[t.level-1], acc, (to-from)*k.Lanes, t.groupRows)
		}
	}
}

func (s *stream) call(f func(*kernel.Span), t *task, block, blocks int) {
	t.Off = (block - s.outerLeft) * s.blockBytes
	t.AccOff = (block - s.outerLeft) * s.vectorBytes
	t.Blocks = blocks
	f(&t.Span)
}

func mod(a, n int) int { return (a%n + n) % n }

func floorMultiple(a, n int) int { return a - mod(a, n) }
