package cpu

import (
	"unsafe"

	"jacobi/internal/cpu/kernel"
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
	w.mirrorColumns(t, from, to)
	masked := t.masked.within(from, to)
	w.plain(t, from, masked.lo)
	if masked.lo < masked.hi {
		f := w.b.operator.sweeps(&w.b.kernel)
		sweep := f.Sweep
		if t.level == w.sweeps && w.b.stream {
			sweep = f.Stream
		}
		w.call(sweep, t, masked.lo, masked.hi-masked.lo)
	}
	w.plain(t, masked.hi, to)
	if t.collect {
		if from, to = max(from, w.left), min(to, w.right); from < to {
			acc := unsafe.Add(t.Acc, (from-w.outerLeft)*w.vectorBytes)
			w.b.kernel.Collect(&w.sums[t.level-1], acc, (to-from)*w.b.kernel.Lanes, t.groupRows)
		}
	}
}

// plain runs a task on blocks [from, to) without masks, except for the first and the last block of a row.
func (w *windowPass) plain(t *task, from, to int) {
	if from >= to {
		return
	}
	k := &w.b.kernel
	x, end, blocks := from, to, w.b.columns.blocks
	if x == 0 {
		t.Masks = w.b.firstMask()
		w.call(k.Edge, t, x, 1)
		x++
	}
	if end == blocks && blocks > 1 {
		end--
	}
	if x < end {
		sweep := k.Sweep
		if t.level == w.sweeps && w.b.stream {
			sweep = k.Stream
		}
		w.call(sweep, t, x, end-x)
	}
	if end < to {
		t.Masks = w.b.lastMask()
		w.call(k.Edge, t, end, 1)
	}
}

func (w *windowPass) call(f func(*kernel.Span), t *task, block, blocks int) {
	t.Off = (block - w.outerLeft) * w.blockBytes
	t.AccOff = (block - w.outerLeft) * w.vectorBytes
	t.SweptOff = (block - w.outerLeft) * w.b.columns.maskBytes()
	t.Blocks = blocks
	f(&t.Span)
}
