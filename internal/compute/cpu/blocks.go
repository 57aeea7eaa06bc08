package cpu

import (
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
)

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
		t.Masks = w.b.firstMask()
		w.call(w.b.functions.Edge, t, x, 1)
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
		t.Masks = w.b.lastMask()
		w.call(w.b.functions.Edge, t, end, 1)
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
