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
	k := &w.b.kernel
	fixed := k.Fixed
	switch {
	case w.pass.Weighted:
		fixed = k.Weighted
	case w.b.operator.general:
		fixed = k.General
	}
	masked := t.masked.within(from, to)
	w.unmasked(t, from, masked.lo)
	if masked.lo < masked.hi {
		w.call(w.function(t, fixed), t, masked.lo, masked.hi-masked.lo)
	}
	w.unmasked(t, masked.hi, to)
	if t.collect {
		if from, to = max(from, w.left), min(to, w.right); from < to {
			acc := unsafe.Add(t.Acc, (from-w.outerLeft)*w.vectorBytes)
			k.Collect(&w.sums[t.level-1], acc, (to-from)*k.Lanes, t.groupRows)
		}
	}
}

// unmasked runs a task on blocks [from, to), of which only the first and the last block of a row may hold points that
// are not swept.
func (w *windowPass) unmasked(t *task, from, to int) {
	if from >= to {
		return
	}
	k := &w.b.kernel
	edge, whole := k.Edge, kernel.Pair{Sweep: k.Sweep, Stream: k.Stream}
	switch {
	case w.pass.Weighted:
		edge, whole = k.Weighted.Sweep, k.WeightedWhole
	case w.b.operator.general:
		edge, whole = k.General.Sweep, k.Whole
	}
	x, end, blocks := from, to, w.b.columns.blocks
	if x == 0 {
		t.Masks = w.b.firstMask()
		w.call(edge, t, x, 1)
		x++
	}
	if end == blocks && blocks > 1 {
		end--
	}
	if x < end {
		w.call(w.function(t, whole), t, x, end-x)
	}
	if end < to {
		t.Masks = w.b.lastMask()
		w.call(edge, t, end, 1)
	}
}

// function returns the one of p that suits the level of a task.
func (w *windowPass) function(t *task, p kernel.Pair) func(*kernel.Span) {
	if t.level == w.sweeps && w.b.stream {
		return p.Stream
	}
	return p.Sweep
}

func (w *windowPass) call(f func(*kernel.Span), t *task, block, blocks int) {
	t.Off = (block - w.outerLeft) * w.blockBytes
	t.AccOff = (block - w.outerLeft) * w.vectorBytes
	t.SweptOff = (block - w.outerLeft) * w.b.columns.maskBytes()
	t.Blocks = blocks
	f(&t.Span)
}
