package kernel

import (
	"math"
	"unsafe"

	"jacobi/solver"
)

// Collector adds the group sums of one sweep on one thread into an exact solver.Sum.
//
// SIMD kernels add them in three limbs of 48 bits for each lane. They scale a group sum to units of solver.Sum and
// split it: its multiples of 2^96 and of 2^48 go to the two upper limbs, the rest, without its fraction, to the lowest
// limb. Each step is exact. A call adds at most 16 terms below 2^48 to a lane of a limb, so floating-point limbs stay
// below 2^52. Between calls the limbs are integers.
type Collector struct {
	Limbs     [3][8]uint64 // units of 2^0, 2^48 and 2^96; by lane
	Scale     float64      // 1 / unit
	Bias      float64      // to be subtracted from every group sum, in units
	calls     int          // since Limbs was emptied
	magnitude solver.Magnitude
	dtype     solver.DType
	sum       solver.Sum
}

// Constants of the collecting kernels. Bound is the smallest term that solver.Sum refuses, in units.
const (
	Bound         = 1 << 142
	collectGroups = 64     // largest number of groups in a call
	collectTerms  = 16     // largest number of terms of a lane in a call
	maxCalls      = 1 << 8 // each adds at most 2^52 units to a lane of a limb, so that 8 lanes fit 64 bits together
)

// NewCollector returns an empty Collector for a problem's magnitude and type.
func NewCollector(e solver.Magnitude, t solver.DType) Collector {
	return Collector{Scale: math.Ldexp(1, 134-2*int(e)), magnitude: e, dtype: t}
}

// bias returns the part of a group sum that is not squares: the smallest normal number, twice for each row.
func bias(t solver.DType, rows int) float64 {
	if t == solver.Float32 {
		return 2 * float64(rows) * smallest32
	}
	return 2 * float64(rows) * smallest64
}

// The smallest normal numbers.
const (
	smallest32 = 0x1p-126
	smallest64 = 0x1p-1022
)

// Reset empties the collector.
func (c *Collector) Reset() {
	c.sum = solver.Sum{}
	c.Limbs = [3][8]uint64{}
	c.calls = 0
}

// Total returns the exact sum of all groups since Reset.
func (c *Collector) Total() solver.Sum {
	c.empty()
	return c.sum
}

// empty moves the limbs into the sum.
func (c *Collector) empty() {
	for i := range c.Limbs {
		var n uint64
		for _, lane := range c.Limbs[i] {
			n += lane
		}
		c.sum.AddScaled(n, 48*i)
	}
	c.Limbs = [3][8]uint64{}
	c.calls = 0
}

// Collect adds the sums of n complete groups with the given number of rows; n is a multiple of k.Lanes.
func (k *Kernel) Collect(c *Collector, acc unsafe.Pointer, n, rows int) {
	groupBias := bias(c.dtype, rows)
	c.Bias = groupBias * c.Scale
	for n > 0 {
		part := min(n, collectGroups, collectTerms*k.Lanes)
		// Scale is a normal number unless the magnitude is absurd.
		if k.collect == nil || c.Scale < 0x1p-1000 || c.Scale > 0x1p1000 || !k.collect(c, acc, part) {
			c.add(acc, part, groupBias)
		} else if c.calls++; c.calls == maxCalls {
			c.empty()
		}
		acc = unsafe.Add(acc, part*c.dtype.Size())
		n -= part
	}
}

// add adds groups one by one, with the bias subtracted from each.
func (c *Collector) add(acc unsafe.Pointer, n int, bias float64) {
	if c.dtype == solver.Float32 {
		for _, v := range unsafe.Slice((*float32)(acc), n) {
			c.sum.Add(float64(v)-bias, c.magnitude)
		}
		return
	}
	for _, v := range unsafe.Slice((*float64)(acc), n) {
		c.sum.Add(v-bias, c.magnitude)
	}
}
