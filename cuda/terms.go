package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
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

// openOperator allocates the memory of the operator. Kernels without terms need none.
func (d *device) openOperator() (o operator, err error) {
	if plain(d.layout) {
		return o, nil
	}
	o = newOperator(d.layout)
	fixed, busy, source := o.sizes(d.layout)
	if o.fixed, err = d.alloc(fixed); err != nil {
		return o, fmt.Errorf("fixed points: %w", err)
	}
	if o.busy, err = d.alloc(busy); err != nil {
		return o, fmt.Errorf("fixed points: %w", err)
	}
	if source == 0 {
		return o, nil
	}
	if o.source.base, err = d.alloc(source); err != nil {
		return o, fmt.Errorf("values of points: %w", err)
	}
	o.terms.source = o.source.base
	return o, nil
}

// loadOperator reads the values and the fixed points of all rows held.
func (d *device) loadOperator(ctx context.Context, o operator) error {
	if plain(d.layout) {
		return nil
	}
	if o.source.base != 0 {
		// Kernels also read the padding after a row, which must hold numbers.
		if err := d.fast.Fill(o.source.base, 0, int(o.source.bytes())); err != nil {
			return err
		}
	}
	var values []upload
	for k := range d.layout.Operator.ValuesPerPoint() {
		of := solver.Value(k)
		values = append(values, newUpload(o.fieldOf(of, d.layout.Mesh), d.layout.Operator.Values, of))
	}
	if len(values) > 0 {
		if err := d.load(ctx, d.fast, d.layout.Mesh, values...); err != nil {
			return err
		}
	}
	return d.loadFixed(ctx, o)
}

// fieldOf returns the rows of a value in the memory of the operator.
func (o operator) fieldOf(k solver.Value, m solver.Mesh) field {
	rows := o.source
	rows.base += driver.DevicePtr(int(k) * pitchOf(m))
	return rows
}

// repeating returns read, with columns 0 and NX-1 replaced by copies of columns NX-2 and 1 if they are periodic.
func repeating(m solver.Mesh, read func(y int, dst []byte) error) func(y int, dst []byte) error {
	if !m.PeriodicColumns() {
		return read
	}
	size, width := m.DType.Size(), m.RowBytes()
	return func(y int, dst []byte) error {
		if err := read(y, dst); err != nil {
			return err
		}
		copy(dst[:size], dst[width-2*size:])
		copy(dst[width-size:], dst[size:2*size])
		return nil
	}
}

// loadFixed makes the tables of fixed points. It goes from the last group of rows to the first: a group with fixed
// points is its own busy group, and any other one takes the busy group of the group below.
func (d *device) loadFixed(ctx context.Context, o operator) error {
	words, stage := int(o.words), d.staging.Bytes()
	chunk := max(1, len(stage)/(12*words))
	if 12*words > len(stage) {
		return fmt.Errorf("cuda backend: %d bytes of staging memory for %d columns", len(stage), d.layout.Mesh.NX)
	}
	p := newPoints(d.layout, words)
	below := make([]uint32, words)
	for w := range below {
		below[w] = neverBusy
	}
	for hi := int(o.groups); hi > 0; hi -= chunk {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		lo := max(0, hi-chunk)
		n := (hi - lo) * words
		for g := hi - 1; g >= lo; g-- {
			row := stage[(g-lo)*words*8:][:words*8]
			if err := p.group(o.lo+g, row); err != nil {
				return err
			}
			busy := stage[8*n+(g-lo)*words*4:]
			for w := range words {
				if binary.LittleEndian.Uint64(row[8*w:]) != 0 {
					below[w] = uint32(g)
				}
				binary.LittleEndian.PutUint32(busy[4*w:], below[w])
			}
		}
		at := uint64(lo) * uint64(words)
		if err := d.fast.CopyToDevice(o.fixed+driver.DevicePtr(8*at), d.staging, 0, 8*n); err != nil {
			return err
		}
		if err := d.fast.CopyToDevice(o.busy+driver.DevicePtr(4*at), d.staging, 8*n, 4*n); err != nil {
			return err
		}
		if err := d.awaitAll(ctx, d.fast); err != nil {
			return err
		}
	}
	return nil
}

// points makes words of fixed points, for rows held in groups.
type points struct {
	layout solver.Layout
	sides  []byte // for each word the columns that no sweep updates
	fixed  []bool // room for a row
}

func newPoints(l solver.Layout, words int) *points {
	p := &points{layout: l, sides: make([]byte, words), fixed: make([]bool, words*wordColumns)}
	lo, hi := l.Mesh.InteriorColumns()
	for x := range words * wordColumns {
		if x < lo || x >= hi {
			p.sides[x/wordColumns] |= 1 << (x % wordColumns)
		}
	}
	return p
}

// group writes the words of a group of rows, counted in the mesh, to dst. Rows that are not held have no bits.
func (p *points) group(group int, dst []byte) error {
	clear(dst)
	held, interior := p.layout.Held(), p.layout.Mesh.Interior()
	for r := range solver.GroupRows {
		row := group*solver.GroupRows + r
		y, ok := p.layout.Mesh.Canonical(row)
		switch {
		case !ok || row < held.Lo || row >= held.Hi:
			continue
		case y < interior.Lo || y >= interior.Hi:
			for w := range p.sides {
				dst[8*w+r] = 0xff
			}
			continue
		}
		for w, side := range p.sides {
			dst[8*w+r] = side
		}
		if p.layout.Operator.Fixed == nil {
			continue
		}
		if err := p.layout.Operator.Fixed.FixedRow(y, p.fixed[:p.layout.Mesh.NX]); err != nil {
			return fmt.Errorf("fixed points of row %d: %w", y, err)
		}
		for w := range p.sides {
			for j, set := range p.fixed[w*wordColumns:][:wordColumns] {
				if set {
					dst[8*w+r] |= 1 << j
				}
			}
		}
	}
	return nil
}
