package cpu

import (
	"math"
	"runtime"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// A row of sweptRows holds one bit for each column, set if the column is swept: for each block 4 masks of
// kernel.MaskBytes, one for each vector, with a bit for each lane.
type sweptRows struct {
	*field
	columns rowLayout
	lo, hi  int // of the columns between walls
}

// maskBytes returns the bytes of the masks of a block.
func (l rowLayout) maskBytes() int { return 4 * kernel.MaskBytes(l.lanes) }

// maskStride returns the bytes from one row of masks to the next.
func (l rowLayout) maskStride() int { return ceilDiv(l.blocks*l.maskBytes(), cacheLine) * cacheLine }

// set makes row y that of all columns between the walls but those of fixed, which may be nil for none. It returns the
// range of blocks that hold fixed columns.
func (s sweptRows) set(y int, fixed []bool) (blocks blockRange) {
	row := unsafe.Slice((*byte)(s.row(y)), s.columns.maskStride())
	clear(row)
	lanes := s.columns.lanes
	for c := s.lo; c < s.hi; c++ {
		if fixed != nil && fixed[c] {
			blocks = blocks.with(c / (4 * lanes))
			continue
		}
		at := s.columns.index(c)
		lane := at % lanes
		row[at/lanes*kernel.MaskBytes(lanes)+lane/8] |= 1 << (lane % 8)
	}
	return blocks
}

// blockRange is the range of blocks [lo, hi).
type blockRange struct{ lo, hi int }

// with returns the smallest range that holds r and a block.
func (r blockRange) with(block int) blockRange { return r.union(blockRange{block, block + 1}) }

// union returns the smallest range that holds both.
func (r blockRange) union(o blockRange) blockRange {
	switch {
	case r.lo == r.hi:
		return o
	case o.lo == o.hi:
		return r
	}
	return blockRange{min(r.lo, o.lo), max(r.hi, o.hi)}
}

// within returns the part of r within [from, to), and an empty range at from if there is none.
func (r blockRange) within(from, to int) blockRange {
	if lo, hi := max(r.lo, from), min(r.hi, to); lo < hi {
		return blockRange{lo, hi}
	}
	return blockRange{from, from}
}

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

// slack allows for the rounding of a sum of fractions.
const slack = 1e-6

// ThreadsOn returns the number of threads for a share of the cores.
func ThreadsOn(cores float64) int { return max(1, int(cores+slack)) }

// PerCoreOn returns how many of the busy threads take turns on a core if they share the given number of cores.
func PerCoreOn(threads int, cores float64) int {
	return max(1, int(math.Ceil(float64(threads)/cores-slack)))
}

// MemoryBytes returns the number of bytes that New allocates: two fields, the values and the fixed points of the
// operator, and the scratch of each thread.
func MemoryBytes(l solver.Layout, o Options) (int64, error) {
	o = o.complete()
	k, err := kernel.Find(o.Kernel, l.Mesh.DType)
	if err != nil {
		return 0, err
	}
	columns := newRowLayout(l.Mesh, k)
	_, scratch := newPlans(l, columns, o.Cache)
	return bytesOf(newFields(l, columns, newOperator(l, columns))) + int64(o.Threads)*int64(scratch), nil
}

// newFields returns the fields of a backend without memory: now, next and those of its operator.
func newFields(l solver.Layout, columns rowLayout, o *operator) []*field {
	return append([]*field{newField(l.Held(), columns.stride), newField(l.Held(), columns.stride)}, o.fields()...)
}

func bytesOf(fields []*field) (bytes int64) {
	for _, f := range fields {
		bytes += int64(f.bytes())
	}
	return bytes
}

// complete returns o with defaults for this machine in place of zeros.
func (o Options) complete() Options {
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Cache == 0 {
		o.Cache = scratchCache()
	}
	o.ThreadsPerCore = max(1, o.ThreadsPerCore)
	return o
}

// newPlans returns the plans for a layout, indexed by the number of sweeps, and the largest scratch in bytes that any
// of them needs.
func newPlans(l solver.Layout, columns rowLayout, cache int) (plans []plan, scratch int) {
	if l.Operator.Weighted {
		cache *= 3 // the next level gives the rest fast enough, and wider windows repeat fewer columns
	}
	// Bytes for each block of a row that sweeps read besides the field.
	constant := l.Operator.ValuesPerPoint() * columns.blockBytes()
	if l.Operator.Fixed != nil {
		constant += columns.maskBytes()
	}
	for t := range min(MaxSweeps(l.Mesh), max(minMaxSweeps, l.Depth)) + 1 {
		plans = append(plans, newPlan(columns, max(t, 1), cache, constant))
		scratch = max(scratch, plans[t].bytes())
	}
	return plans, scratch
}
