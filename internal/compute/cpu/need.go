package cpu

import (
	"math"
	"runtime"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

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
