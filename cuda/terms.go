package cuda

import (
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// terms is what the kernels with terms take after a pass: struct Terms in kernels/terms.cuh.
type terms struct {
	fixed, busy              driver.DevicePtr
	words, groups            int32
	left, right, top, bottom int32 // nowhere or -nowhere if there is no mirror
	copies                   int32
	sourcePitch              uint32           // in values
	source                   driver.DevicePtr // weighted points: value k begins k*pass.pitch values later
	scale, blend             uint64           // bits of a value of the field's type
}

// termsPass is the argument of the kernels with terms: struct TermsPass.
type termsPass struct {
	pass
	terms
}

const (
	wordColumns = 8       // of a word of terms.fixed, which stands for them in GroupRows rows
	neverBusy   = 1 << 24 // in terms.busy: no group below has fixed points
)

// plain reports whether kernels without terms compute the operator of a layout on its walls.
func plain(l solver.Layout) bool {
	return l.Operator.Plain() && l.Operator.Fixed == nil &&
		(l.Mesh.Walls == solver.Walls{} || l.Mesh.Walls == solver.WrapRows(true))
}

// operator is the memory of a stripe that kernels with terms read besides the field.
type operator struct {
	terms
	source field // one row of zeros if there is no source; rows of all values, one after the other, of weighted points
	lo     int   // the group of the first row held, counted in the mesh
}

// newOperator returns the operator of a layout without addresses.
func newOperator(l solver.Layout) operator {
	m, rows := l.Mesh, l.Held()
	pitch := pitchOf(m)
	o := operator{source: field{rows: rows, pitch: pitch * max(1, l.Operator.ValuesPerPoint())},
		lo: solver.FloorDiv(rows.Lo, solver.GroupRows)}
	if l.Operator.Values == nil {
		o.source.rows.Hi = rows.Lo + 1
	} else {
		o.sourcePitch = uint32(o.source.pitch / m.DType.Size())
	}
	o.words = int32(pitch / m.DType.Size() / wordColumns)
	o.groups = int32(solver.FloorDiv(rows.Hi-1, solver.GroupRows) - o.lo + 1)
	o.left, o.right, o.top, o.bottom = nowhere, -nowhere, nowhere, -nowhere
	if m.Walls.Left == solver.Neumann {
		o.left = 0
	}
	if m.Walls.Right == solver.Neumann {
		o.right = int32(m.NX - 1)
	}
	if m.Walls.Top == solver.Neumann {
		o.top = 0
	}
	if m.Walls.Bottom == solver.Neumann {
		o.bottom = int32(m.NY - 1)
	}
	if m.PeriodicColumns() {
		o.copies = 1
	}
	o.scale, o.blend = math.Float64bits(l.Operator.Scale), math.Float64bits(l.Operator.Blend)
	if m.DType == solver.Float32 {
		o.scale = uint64(math.Float32bits(float32(l.Operator.Scale)))
		o.blend = uint64(math.Float32bits(float32(l.Operator.Blend)))
	}
	return o
}

// tables returns the number of words.
func (o operator) tables() int64 { return int64(o.words) * int64(o.groups) }

// sizes returns the bytes of the three parts: words of fixed points, groups that are busy, and the source or the values
// of weighted points, of which the plain average needs none.
func (o operator) sizes(l solver.Layout) (fixed, busy, source int64) {
	if !l.Operator.Plain() {
		source = o.source.bytes()
	}
	return 8 * o.tables(), 4 * o.tables(), source
}

// operatorBytes returns the bytes of GPU memory for the operator of a layout.
func operatorBytes(l solver.Layout) int64 {
	if plain(l) {
		return 0
	}
	fixed, busy, source := newOperator(l).sizes(l)
	return fixed + busy + source
}
