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
	sources *valueRows                 // of b; all are one row of zeros if the operator yields none
	terms   *valueRows                 // of the weights of each point
	swept   sweptRows                  // all are one row if there are no fixed points
	fixed   []blockRange               // by row: the blocks that hold fixed points; nil if there are none
	first   int                        // row of fixed[0]
}

// valueRows is rows of some of the values of points: for each block of the field a block for each of them.
type valueRows struct {
	*field
	first solver.Value
	n     int              // number of values
	same  []unsafe.Pointer // by row: where its values are; rows one after another may share
}

// newValueRows returns n values of rows, without memory. If none is yielded, all rows are one.
func newValueRows(yielded bool, rows solver.Stripe, columns rowLayout, first solver.Value, n int) *valueRows {
	stride := columns.strideOf(n * columns.blocks)
	v := &valueRows{field: newSharedRow(rows, stride), first: first, n: n, same: make([]unsafe.Pointer, rows.Rows())}
	if yielded {
		v.field = newField(rows, stride)
	}
	return v
}

// at returns where the values of row y are.
func (v *valueRows) at(y int) unsafe.Pointer { return v.same[y-v.rows.Lo] }

// newOperator returns the operator of l, whose fields have no memory yet.
func newOperator(l solver.Layout, columns rowLayout) *operator {
	rows := l.Held()
	o := &operator{Operator: l.Operator, kind: kernel.OperatorOf(l.Operator), first: rows.Lo}
	o.swept.columns = columns
	o.swept.lo, o.swept.hi = l.Mesh.InteriorColumns()
	o.swept.field = newSharedRow(rows, columns.maskStride())
	if o.Fixed != nil {
		o.fixed = make([]blockRange, rows.Rows())
		o.swept.field = newField(rows, columns.maskStride())
	}
	if o.kind == kernel.Plain {
		return o
	}
	o.sources = newValueRows(o.Values != nil, rows, columns, solver.Source, 1)
	if n := o.kind.Terms(); n > 0 {
		o.terms = newValueRows(true, rows, columns, solver.West, n)
	}
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
	for _, v := range o.values() {
		fields = append(fields, v.field)
	}
	return append(fields, o.swept.field)
}

// values returns the values of points that the operator has.
func (o *operator) values() (all []*valueRows) {
	for _, v := range []*valueRows{o.sources, o.terms} {
		if v != nil {
			all = append(all, v)
		}
	}
	return all
}

// open fills the row that all rows share, once the fields have memory.
func (o *operator) open() {
	for _, v := range o.values() {
		for i := range v.same {
			v.same[i] = v.row(v.rows.Lo + i)
		}
	}
	if o.Fixed == nil {
		o.swept.set(o.first, nil)
	}
}

// load reads row y of the values and of the fixed points, which is row canonical of mesh m. buf and points have room
// for a row. above says that row y-1 is loaded.
func (o *operator) load(m solver.Mesh, y, canonical int, above bool, buf []byte, points []bool) error {
	if o.Values != nil {
		for _, v := range o.values() {
			if err := v.load(o, m, y, canonical, above, buf); err != nil {
				return err
			}
		}
	}
	if o.Fixed != nil {
		if err := o.Fixed.FixedRow(canonical, points); err != nil {
			return fmt.Errorf("fixed points of row %d: %w", canonical, err)
		}
		o.fixed[y-o.first] = o.swept.set(y, points)
	}
	return nil
}

// load reads row y. If its values are those of row y-1, sweeps read them there: the rows of a layer, or those without a
// source, then come from the caches.
func (v *valueRows) load(o *operator, m solver.Mesh, y, canonical int, above bool, buf []byte) error {
	columns, i := o.swept.columns, y-v.rows.Lo
	if above && v.repeats(o.Values, m, y) {
		v.same[i] = v.same[i-1]
		return nil
	}
	v.same[i] = v.row(y)
	for k := range v.n {
		of := v.first + solver.Value(k)
		if err := o.Values.ValueRow(canonical, of, buf); err != nil {
			return fmt.Errorf("%v of row %d: %w", of, canonical, err)
		}
		columns.packEvery(unsafe.Add(v.same[i], k*columns.blockBytes()), buf, v.n)
	}
	size := v.n * columns.blocks * columns.blockBytes()
	if above && bytes.Equal(bytesAt(v.same[i-1], size), bytesAt(v.same[i], size)) {
		v.same[i] = v.same[i-1]
	}
	return nil
}

// repeats reports whether the values of row y are known to be those of row y-1.
func (v *valueRows) repeats(values solver.ValueRows, m solver.Mesh, y int) bool {
	for k := range v.n {
		if !solver.ValuesOf(values, v.first+solver.Value(k)).Repeats(m, y) {
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
	columns := o.swept.columns
	at := left * columns.blockBytes()
	for i := range t.Rows {
		t.Swept[i] = unsafe.Add(o.swept.row(y+i), left*columns.maskBytes())
		if o.sources != nil {
			t.Sources[i] = unsafe.Add(o.sources.at(y+i), at)
		}
	}
	if o.terms != nil {
		o.placeTerms(t, y, o.terms.n*at)
	}
	t.Weights = unsafe.Pointer(&o.weights)
}

// placeTerms gives a task its weights, and places to fetch from. In the next band the first level sweeps the rows that
// follow those it sweeps in this one. Together the levels fetch their weights, each two lines of a block.
func (o *operator) placeTerms(t *task, y, at int) {
	done := (t.level - 1) * kernel.AheadBytes
	fetch := done < o.terms.n*o.swept.columns.blockBytes()
	for i := range t.Rows {
		t.Terms[i] = unsafe.Add(o.terms.at(y+i), at)
		t.Ahead[i] = t.Terms[i]
		if next := y + i + t.level - 1 + kernel.Rows; fetch && next < o.terms.rows.Hi {
			t.Ahead[i] = unsafe.Add(o.terms.at(next), at+done)
		}
	}
}
