package reference

import (
	"math"

	"jacobi/solver/multigrid"
)

// solve sets the unknowns of the coarsest level j by the definition in multigrid.Direct.
func (j *Jacobi) solve(d *multigrid.Direct) {
	at := func(block, slot int) int {
		x, y := d.Point(block, slot)
		return y*j.mesh.NX + x
	}
	b := make([][]float64, d.Blocks)
	for i := range b {
		b[i] = freeSlots(d, i, func(k int) float64 { return j.source[at(i, k)] })
	}
	clear(j.field)
	for i, x := range solution(d, b) {
		for k, v := range x {
			j.field[at(i, k)] = j.round(v)
		}
	}
	j.copyPeriodic(j.field)
}

// solution returns the solution by blocks.
func solution(d *multigrid.Direct, b [][]float64) [][]float64 {
	n := d.Chain
	y, x := make([][]float64, n), make([][]float64, d.Blocks)
	var z []float64
	for i := range n {
		y[i] = b[i]
		if i > 0 {
			y[i] = sum(d, i, d.Low(i), z, b[i])
		}
		z = product(d, d.Inverse, i, y[i], make([]float64, d.Slots))
	}
	for i := n - 1; i >= 0; i-- {
		v := y[i]
		if i < n-1 {
			v = sum(d, i, d.High(i), x[i+1], y[i])
		}
		x[i] = product(d, d.Inverse, i, v, make([]float64, d.Slots))
	}
	if n == d.Blocks {
		return x
	}
	v := b[n]
	if n > 0 {
		v = sum(d, n, d.Low(n), x[0], sum(d, n, d.Low(n), x[n-1], v))
	}
	x[n] = product(d, d.Inverse, n, v, make([]float64, d.Slots))
	for i := range n {
		x[i] = product(d, d.Ring, i, x[n], x[i])
	}
	return x
}

// freeSlots returns the values of a block, 0 at slots that are not free.
func freeSlots(d *multigrid.Direct, block int, value func(slot int) float64) []float64 {
	v := make([]float64, d.Slots)
	for k := range v {
		if d.Free(block, k) {
			v[k] = value(k)
		}
	}
	return v
}

// sum returns fma(w, a, b) of a block.
func sum(d *multigrid.Direct, block int, w float64, a, b []float64) []float64 {
	return freeSlots(d, block, func(k int) float64 { return math.FMA(w, a[k], b[k]) })
}

// product returns the product of a block's matrix and v, added to a vector in the order of slots.
func product(d *multigrid.Direct, matrices []float64, block int, v, to []float64) []float64 {
	sums := make([]float64, d.Slots)
	for j, sum := range to {
		for k, f := range v {
			sum = math.FMA(matrices[(block*d.Slots+j)*d.Slots+k], f, sum)
		}
		sums[j] = sum
	}
	return sums
}
