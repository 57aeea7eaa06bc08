package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// operator is a solver.Operator in the order of the kernels: rows of values, and of the points that are swept, of all
// rows that a rank holds. The plain average without fixed points has neither.
type operator struct {
	solver.Operator
	kind    kernel.Operator
	weights [2 * kernel.MaxVector]byte // h in every lane of a vector, then q
	values  *field                     // rows of values; all are one row of zeros if the operator yields none
	same    []unsafe.Pointer           // by row, from first on: where its values are; rows one after another may share
	swept   sweptRows                  // all are one row if there are no fixed points
	fixed   []blockRange               // by row: the blocks that hold fixed points; nil if there are none
	first   int                        // row of fixed[0] and same[0]
}

// newOperator returns the operator of l, whose fields have no memory yet.
func newOperator(l solver.Layout, columns rowLayout) *operator {
	rows := l.Held()
	o := &operator{Operator: l.Operator, kind: kernel.OperatorOf(l.Operator), first: rows.Lo}
	if o.kind.Values() == 0 && o.Fixed == nil {
		return o
	}
	o.swept.columns = columns
	o.swept.lo, o.swept.hi = l.Mesh.InteriorColumns()
	o.swept.field = newSharedRow(rows, columns.maskStride())
	if o.Fixed != nil {
		o.fixed = make([]blockRange, rows.Rows())
		o.swept.field = newField(rows, columns.maskStride())
	}
	if o.kind.Values() == 0 {
		return o
	}
	o.values = newSharedRow(rows, columns.strideOf(o.kind.Values()*columns.blocks))
	if o.Values != nil {
		o.values = newField(rows, o.values.shared)
	}
	o.same = make([]unsafe.Pointer, rows.Rows())
	weights := o.weights[:0]
	for _, w := range []float64{o.Scale, o.Blend} {
		for range columns.lanes {
			if columns.size == 4 {
				weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(float32(w)))
			} else {
				weights = binary.LittleEndian.AppendUint64(weights, math.Float64bits(w))
			}
		}
	}
	return o
}

// fields returns the fields of the operator.
func (o *operator) fields() (fields []*field) {
	for _, f := range []*field{o.values, o.swept.field} {
		if f != nil {
			fields = append(fields, f)
		}
	}
	return fields
}

// open fills the row that all rows share, once the fields have memory.
func (o *operator) open() {
	for i := range o.same {
		o.same[i] = o.values.row(o.first + i)
	}
	if o.Fixed == nil && o.swept.field != nil {
		o.swept.set(o.first, nil)
	}
}

// load reads row y of the values and of the fixed points, which is row canonical of the mesh. buf and points have room
// for a row. again says that the values are those of row y-1, and sweeps read them there. So they do with others that
// turn out to be the same: the rows of a layer then come from the caches.
func (o *operator) load(y, canonical int, again, above bool, buf []byte, points []bool) error {
	columns, n := o.swept.columns, o.ValuesPerPoint()
	i := y - o.first
	if again && n > 0 {
		o.same[i], n = o.same[i-1], 0
	}
	for k := range n {
		if err := o.Values.ValueRow(canonical, solver.Value(k), buf); err != nil {
			return fmt.Errorf("%v of row %d: %w", solver.Value(k), canonical, err)
		}
		columns.packEvery(unsafe.Add(o.values.row(y), k*columns.blockBytes()), buf, n)
	}
	if n > 0 {
		size := n * columns.blocks * columns.blockBytes()
		o.same[i] = o.values.row(y)
		if above && bytes.Equal(bytesAt(o.same[i-1], size), bytesAt(o.same[i], size)) {
			o.same[i] = o.same[i-1]
		}
	}
	if o.Fixed != nil {
		if err := o.Fixed.FixedRow(canonical, points); err != nil {
			return fmt.Errorf("fixed points of row %d: %w", canonical, err)
		}
		o.fixed[i] = o.swept.set(y, points)
	}
	return nil
}

// repeats reports whether the values of row y are known to be those of row y-1.
func (o *operator) repeats(m solver.Mesh, y int) bool {
	for k := range o.ValuesPerPoint() {
		if !solver.ValuesOf(o.Values, solver.Value(k)).Repeats(m, y) {
			return false
		}
	}
	return true
}

func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// masked returns the blocks of n rows from y on that hold fixed points.
func (o *operator) masked(y, n int) (blocks blockRange) {
	if o.fixed != nil {
		for _, r := range o.fixed[y-o.first : y-o.first+n] {
			blocks = blocks.union(r)
		}
	}
	return blocks
}

// place gives a task for rows from y on, with pointers to block left, what the functions for fixed points and for
// operators with values need.
func (o *operator) place(t *task, y, left int) {
	t.masked = o.masked(y, t.Rows)
	columns, n := o.swept.columns, o.kind.Values()
	if n == 0 && t.masked == (blockRange{}) {
		return
	}
	at := left * n * columns.blockBytes()
	for i := range t.Rows {
		t.Swept[i] = unsafe.Add(o.swept.row(y+i), left*columns.maskBytes())
		if n > 0 {
			t.Values[i] = unsafe.Add(o.same[y+i-o.first], at)
		}
	}
	if n > 1 {
		o.fetch(t, y, at)
	}
	t.Weights = unsafe.Pointer(&o.weights)
}

// fetch gives a task places to fetch from. In the next band the first level sweeps the rows that follow those it sweeps
// in this one. Together the levels fetch their values, each two lines of a block.
func (o *operator) fetch(t *task, y, at int) {
	done := (t.level - 1) * kernel.AheadBytes
	for i := range t.Rows {
		t.Ahead[i] = t.Values[i]
		next := y + i + t.level - 1 + kernel.Rows - o.first
		if next < len(o.same) && done < o.kind.Values()*o.swept.columns.blockBytes() {
			t.Ahead[i] = unsafe.Add(o.same[next], at+done)
		}
	}
}
