package cpu

import (
	"context"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// worker is the state of one thread: its scratch and the sums that it gathers.
type worker struct {
	b       *Backend
	scratch memory
	sums    []kernel.Collector // by sweep of the pass
	tasks   []task             // of the current band, in the order of sweeps
	normed  []bool             // by sweep of the pass: whether it has a norm

	_ [2 * cacheLine]byte // so that no other worker, nor what the processor fetches along, is in a line of this one
}

// job is a part of a pass: after all sweeps it yields the given rows, in blocks of columns [left, right).
type job struct {
	rows        solver.Stripe
	left, right int
	upward      bool // go from the lowest band to the topmost; only for passes of one sweep
	pass        solver.Pass
}

// task is the work of one sweep on rows of a band that lie in the same norm groups, or in these and the next ones.
type task struct {
	kernel.Span
	level    int        // 1 for the first sweep of the pass
	normed   bool       // the sweep has a norm
	complete [2]int     // rows of the first and the next groups if the task completes them and they count, else 0
	masked   blockRange // the blocks that hold fixed points
}

// pass does a job tile by tile.
func (w *worker) pass(ctx context.Context, p plan, j job) error {
	for x := j.left; x < j.right; x += p.tile {
		tile := tilePass{worker: w, plan: p, rows: j.rows, left: x, right: min(x+p.tile, j.right),
			upward: j.upward, pass: j.pass}
		if err := tile.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tilePass is a pass over one tile. Level k is the field after k sweeps of the pass. Level 0 is now, the last level
// is next, and the levels between are in the ring.
type tilePass struct {
	*worker
	plan
	rows        solver.Stripe // at the last level
	left, right int           // range of blocks at the last level
	outerLeft   int           // range of blocks at the levels before
	outerRight  int
	upward      bool          // as in job
	pass        solver.Pass   // as in job
	counted     solver.Stripe // rows whose squares this job counts, at every level
	walled      bool          // a wall on the left or right is a Neumann one
	vectorBytes int
	blockBytes  int
	maskBytes   int // of a block
}

func (w *tilePass) run(ctx context.Context) error {
	w.vectorBytes, w.blockBytes = w.b.columns.vectorBytes(), w.b.columns.blockBytes()
	w.maskBytes = w.b.columns.maskBytes()
	walls := w.b.layout.Mesh.Walls
	w.walled = walls.Left == solver.Neumann || walls.Right == solver.Neumann
	w.outerLeft = max(0, w.left-w.overlap)
	w.outerRight = min(w.b.columns.blocks, w.right+w.overlap)
	w.counted = solver.Stripe{Lo: max(w.rows.Lo, w.b.layout.Stripe.Lo), Hi: min(w.rows.Hi, w.b.layout.Stripe.Hi)}
	w.normed = w.normed[:0]
	for sweep := range w.sweeps {
		w.normed = append(w.normed, w.b.layout.Norms.Has(w.pass.First+sweep))
	}
	// In the band at top, level k does rows [top-k, top-k+kernel.Rows). At the first level they are a row group.
	top := floorMultiple(w.rows.Lo-w.sweeps+1, kernel.Rows) + 1
	bands := ceilDiv(w.rows.Hi+w.sweeps-top, kernel.Rows)
	for i := range bands {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if w.upward {
			i = bands - 1 - i
		}
		w.tasks = w.tasks[:0]
		for level := 1; level <= w.sweeps; level++ {
			w.planLevel(level, top+i*kernel.Rows-level)
		}
		w.band()
	}
	return nil
}

// planLevel appends the tasks of a level for the band whose rows at that level begin at y.
func (w *tilePass) planLevel(level, y int) {
	first := max(w.rows.Lo-(w.sweeps-level), w.b.sweepable.Lo)
	end := min(w.rows.Hi+(w.sweeps-level), w.b.sweepable.Hi, y+kernel.Rows)
	for y = max(y, first); y < end; {
		groupsEnd := min(end, w.groupEnd(y))
		next := groupsEnd
		if next%solver.GroupRows == 0 && next < end {
			next = min(end, w.groupEnd(next))
		}
		t := w.addTask()
		t.level = level
		t.normed = w.normed[level-1]
		t.complete = [2]int{}
		if t.normed {
			t.complete[0] = w.complete(y, groupsEnd)
			if next > groupsEnd {
				t.complete[1] = w.complete(groupsEnd, next)
			}
		}
		t.Restart = 0
		if y == first || w.groupEnd(y-1) == y || !t.normed {
			t.Restart = 1
		}
		t.Rows, t.Break = next-y, groupsEnd-y
		w.place(t.Src[:t.Rows+2], level-1, y-1)
		w.mirrorRows(t, y)
		w.place(t.Dst[:t.Rows], level, y)
		w.b.operator.place(t, y, w.outerLeft)
		p := unsafe.Add(w.scratch.pointer(), w.ringBytes())
		// Groups that follow one another take turns with two places for their sums.
		t.Acc, t.AccNext = unsafe.Add(p, 2*(level-1)*w.accStride), w.accStride
		if y&solver.GroupRows != 0 {
			t.Acc, t.AccNext = unsafe.Add(t.Acc, w.accStride), -w.accStride
		}
		place := mod(y+level-1, kernel.Rows) // of the row in the band
		t.Carry = unsafe.Add(p, w.accBytes()+(level-1)*kernel.Rows*cacheLine+place*w.vectorBytes)
		y = next
	}
}

// complete returns the rows of the norm groups of rows [y, end) if these complete them and they count, else 0.
func (w *tilePass) complete(y, end int) int {
	if y < w.counted.Lo || end > w.counted.Hi || w.groupEnd(end-1) != end {
		return 0
	}
	return end - max(w.counted.Lo, floorMultiple(y, solver.GroupRows))
}

// groupEnd returns the end of the norm group of row y, cut where rows begin or cease to count, so that a group holds
// either kind alone.
func (w *tilePass) groupEnd(y int) int {
	end := floorMultiple(y, solver.GroupRows) + solver.GroupRows
	if y < w.counted.Lo {
		end = min(end, w.counted.Lo)
	} else if y < w.counted.Hi {
		end = min(end, w.counted.Hi)
	}
	return end
}

// addTask appends a task. Its fields may hold what an earlier task left: clearing them takes as long as a block.
func (w *worker) addTask() *task {
	n := len(w.tasks)
	if n == cap(w.tasks) {
		w.tasks = append(w.tasks, task{})
	}
	w.tasks = w.tasks[:n+1]
	return &w.tasks[n]
}

// place sets rows to the addresses of rows y, y+1, ... of a level, at block outerLeft. Rows that are never swept are
// the same at all levels, so they are read from now. Only the first and the last of rows may be such. The ring slides:
// a row takes the slot of the row above it at the previous level, which is no longer needed.
func (w *tilePass) place(rows []unsafe.Pointer, level, y int) {
	offset := w.outerLeft * w.blockBytes
	if level == 0 || level == w.sweeps {
		f := w.b.now
		if level != 0 {
			f = w.b.next
		}
		row := unsafe.Add(f.row(y), offset)
		for i := range rows {
			rows[i] = row
			row = unsafe.Add(row, f.stride)
		}
		return
	}
	// Row rows.Lo-1 of the last level has slot 0. No task reads a row that comes before it in the ring.
	slot := int(uint32(y-w.rows.Lo+1+w.sweeps-level) % uint32(w.ringRows))
	ring, stride := w.scratch.pointer(), w.ringStride
	end := w.ringRows * stride
	at := slot * stride
	for i := range rows {
		rows[i] = unsafe.Add(ring, at)
		if at += stride; at == end {
			at = 0
		}
	}
	if y < w.b.sweepable.Lo {
		rows[0] = unsafe.Add(w.b.now.row(y), offset)
	}
	if last := y + len(rows) - 1; last >= w.b.sweepable.Hi {
		rows[len(rows)-1] = unsafe.Add(w.b.now.row(last), offset)
	}
}

// band runs the tasks chunk by chunk.
func (w *tilePass) band() {
	chunk := max(1, chunkColumns/(4*w.b.columns.lanes))
	if w.sweeps == 1 {
		chunk = w.right - w.outerLeft // no later sweep uses the chunk
	}
	for x := w.outerLeft; x-(w.sweeps-1) < w.right; x += chunk {
		for i := range w.tasks {
			t := &w.tasks[i]
			left, right := w.outerLeft, w.outerRight
			if t.level == w.sweeps {
				left, right = w.left, w.right
			}
			lag := t.level - 1
			if from, to := max(left, x-lag), min(right, x+chunk-lag); from < to {
				if from == left && left > 0 {
					w.carryIn(t, from)
				}
				w.do(t, from, to)
			}
		}
	}
}

// carryIn gives a task the vectors to the left of its range. The first level takes them from now, the last level from
// the overlap. The levels between have none: their wrong values at the end of the overlap spread by one column a sweep
// and do not leave the overlap.
func (w *tilePass) carryIn(t *task, block int) {
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
func (w *tilePass) do(t *task, from, to int) {
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
func (w *tilePass) unmasked(t *task, from, to int) {
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
func (w *tilePass) function(t *task, p *kernel.Pair) func(*kernel.Span) {
	if t.level == w.sweeps && w.b.stream {
		return p.Stream
	}
	return p.Sweep
}

func (w *tilePass) call(f func(*kernel.Span), t *task, block, blocks int) {
	t.Off = (block - w.outerLeft) * w.blockBytes
	t.AccOff = (block - w.outerLeft) * w.vectorBytes
	t.SweptOff = (block - w.outerLeft) * w.maskBytes
	t.Blocks = blocks
	f(&t.Span)
}

// Beyond a Neumann wall lies the mirror of the point before it. The kernels know nothing of it: the row above row 0 is
// row 1, the carried column to the left of column 0 is column 1, and column nx repeats column nx-2.

// mirrorRows replaces the source rows of a task beyond Neumann walls, where y is the task's first row.
func (w *tilePass) mirrorRows(t *task, y int) {
	m := &w.b.layout.Mesh
	if y == 0 && m.Walls.Top == solver.Neumann {
		t.Src[0] = t.Src[2]
	}
	if y+t.Rows == m.NY && m.Walls.Bottom == solver.Neumann {
		t.Src[t.Rows+1] = t.Src[t.Rows-1]
	}
}

// mirrorColumns sets the columns beyond Neumann walls for blocks [from, to) of the source rows of a task. The rows of
// now have theirs from the end of the pass before.
func (w *tilePass) mirrorColumns(t *task, from, to int) {
	walls, l := &w.b.layout.Mesh.Walls, &w.b.columns
	if from == 0 && walls.Left == solver.Neumann {
		for r := range t.Rows {
			carry := unsafe.Add(t.Carry, r*w.vectorBytes+w.vectorBytes-l.size)
			copyValue(carry, unsafe.Add(t.Src[r+1], l.index(1)*l.size), l.size)
		}
	}
	if to < l.blocks || !l.mirrored || t.level == 1 {
		return
	}
	// The call for the blocks before has perhaps overwritten column nx-2 of the source, but then it has carried it.
	carried := (l.nx-2)/(4*l.lanes) < from
	base := w.outerLeft * w.blockBytes
	for r := range t.Rows {
		row := t.Src[r+1]
		inner := unsafe.Add(row, l.index(l.nx-2)*l.size-base)
		if carried {
			inner = unsafe.Add(t.Carry, r*w.vectorBytes+w.vectorBytes-l.size)
		}
		copyValue(unsafe.Add(row, l.index(l.nx)*l.size-base), inner, l.size)
	}
}

func mod(a, n int) int { return (a%n + n) % n }

func floorMultiple(a, n int) int { return a - mod(a, n) }
