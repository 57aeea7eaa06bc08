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

// loadFixed makes the tables of fixed points. It goes from the last group of rows to the first, because a group is busy
// or has the busy group of the one below.
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

// deepShape is the shape of a kernel in sweep_deep.cu, whose blocks hold pipelines of warps.
type deepShape struct {
	size      int  // bytes of a value
	columns   int  // of a lane
	levels    int  // sweeps that a warp does
	step      int  // rows between two barriers
	warps     int  // largest number of warps in a block
	pipeWarps int  // largest number of warps in a pipeline
	edge      int  // eighths of their length that are added to the outer strips when they are shared out
	values    int  // of a point besides that of the field, which need a ring of their own
	whole     bool // the kernel does whole multiples of levels alone
}

// deep describes a kernel in sweep_deep.cu.
func deep(name string, s deepShape) shape {
	return shape{name: name, maxThreads: warpSize * s.warps, maxSweeps: s.levels * s.pipeWarps, divide: s.divide}
}

// bare describes a kernel in sweep_deep.cu for passes without norms or with that of the last sweep.
func bare(name string, s deepShape) shape {
	b := deep(name, s)
	b.bare = true
	return b
}

func (s deepShape) divide(c capacity, p *pass) (division, bool) {
	const barriers = 15 // of a block, without the one of __syncthreads
	sweeps := int(p.sweeps)
	if s.whole && sweeps%s.levels != 0 {
		return division{}, false
	}
	slot := warpSize * s.columns * s.size       // bytes of a row in shared memory
	warps := (sweeps + s.levels - 1) / s.levels // of a pipeline
	stale := (sweeps + s.columns - 1) / s.columns
	rings := solver.GroupRows + 2*s.step*(warps-1) + s.sourceSlots(warps) // slots of a pipeline
	shared := rings*slot + s.levels*warps*sumBytes
	pipes := min(s.warps/warps, c.shared/shared)
	if warps > 1 {
		pipes = min(pipes, barriers/(warps/2))
	}
	if pipes == 0 {
		return division{}, false
	}
	overlap := 2 * stale * s.columns // of two strips: columns beside the cut are stale after the last sweep
	width := warpSize*s.columns - overlap
	l := line{
		strips: max((int(p.nx)-overlap+width-1)/width, 1),
		groups: p.groups(),
		seam:   (2*sweeps + 6*solver.GroupRows) / solver.GroupRows,
		edge:   s.edge,
		fill:   2*sweeps + (s.levels+s.step)*warps,
	}
	pipes, blocks := l.share(c.sms, pipes)
	return division{
		blocks: blocks, threads: pipes * warpSize * warps, shared: pipes * shared,
		cut: cut{seam: int32(l.seam), edge: int32(l.edge)},
	}, true
}

// sourceSlots returns the slots of the ring for a source or the values of weighted points, see
// kernels/deep_source.cuh.
func (s deepShape) sourceSlots(warps int) int {
	ahead := solver.GroupRows - s.step
	rows := ahead + 1 + (s.levels+2*s.step)*(warps-1)
	if warps == 1 {
		rows = ahead + 1 + s.step
	}
	return (rows + solver.GroupRows - 1) / solver.GroupRows * solver.GroupRows * s.values
}

// line is the sequence of positions that the pipelines of warps share out, see kernels/shares.cuh.
type line struct {
	strips, groups int
	seam, edge     int
	fill           int // rows that a share costs in addition to its own: overlap, and filling the pipeline
}

// positions returns the number of positions in the line.
func (l line) positions() int {
	return l.strips*(l.groups+l.seam) + min(l.strips, 2)*(l.groups*l.edge/8)
}

// share chooses the number of pipelines in a block, at most maxPipes, and the number of blocks. With more pipelines
// shares are smaller, but each share costs its overlap with the next, and pipelines slow each other down. There is one
// block for each multiprocessor, unless some shares would be empty. The constants were fitted to an H200; see
// docs/notebook/gpu-deep-kernel.md.
func (l line) share(sms, maxPipes int) (pipes, blocks int) {
	positions := l.positions()
	best := math.Inf(1)
	for n := 1; n <= maxPipes; n++ {
		full := float64(n) / float64(maxPipes)
		rows := float64(positions*solver.GroupRows) / float64(sms*n)
		// The costs of a row and of a row of filling, relative to a row on a full multiprocessor.
		row, fill := max(0.35, 1-1.09*(1-full)*(1-full)), 0.6+0.34*full*full*full
		if cost := row*rows + fill*float64(l.fill); cost < best {
			best, pipes = cost, n
		}
	}
	return pipes, min(sms, (positions+pipes-1)/pipes)
}
