package cpu

import (
	"math"
	"runtime"

	"jacobi/internal/cpu/kernel"
	"jacobi/solver"
)

// slack makes up for the rounding of a sum of fractions.
const slack = 1e-6

// ThreadsOn returns how many threads suit a share of cores.
func ThreadsOn(cores float64) int { return max(1, int(cores+slack)) }

// PerCoreOn returns how many busy threads take turns on a core if so many share the cores.
func PerCoreOn(threads int, cores float64) int {
	return max(1, int(math.Ceil(float64(threads)/cores-slack)))
}

// MemoryBytes returns how many bytes New takes: two fields, and the scratch of each thread.
func MemoryBytes(l solver.Layout, o Options) (int64, error) {
	o = o.complete()
	k, err := kernel.Find(o.Kernel, l.Mesh.DType)
	if err != nil {
		return 0, err
	}
	columns := newRowLayout(l.Mesh, k)
	_, scratch := newPlans(columns, l.Depth, o.Cache)
	return 2*int64(fieldBytes(l.Held(), columns)) + int64(o.Threads)*int64(scratch), nil
}

// complete returns o with the choices of this machine for those that it leaves open.
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

// newPlans returns the plans by number of sweeps, for halos of the given depth, and the most scratch that one of them
// needs.
func newPlans(columns rowLayout, depth, cache int) (plans []plan, scratch int) {
	for t := range max(leastMaxSweeps, depth) + 1 {
		plans = append(plans, newPlan(columns, max(t, 1), cache))
		scratch = max(scratch, plans[t].bytes())
	}
	return plans, scratch
}
