package cpu

import (
	"unsafe"

	"jacobi/solver"
)

// Beyond a Neumann wall lies the mirror of the point before it. The kernels know nothing of it: the row above row 0 is
// row 1, the carried column to the left of column 0 is column 1, and column nx repeats column nx-2.

// mirrorRows replaces the source rows of a task beyond Neumann walls, where y is the task's first row.
func (w *windowPass) mirrorRows(t *task, y int) {
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
func (w *windowPass) mirrorColumns(t *task, from, to int) {
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
