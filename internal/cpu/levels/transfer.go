package levels

import (
	"jacobi/internal/cpu/kernel"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// columns is the transfer between the columns of a level and those of the next coarser one.
type columns struct {
	coarse []int32   // by fine column: the coarse column before it
	weight []float32 // by fine column: the weight of the one after that
	first  []int32   // by coarse column: the first fine column of the restriction
	taps   [multigrid.Taps][]float32
	// lo and hi are the coarse columns that are swept.
	lo, hi int
}

func newColumns(a multigrid.Axis, fine, coarse solver.Mesh) *columns {
	c := &columns{coarse: make([]int32, fine.NX), weight: make([]float32, fine.NX), first: make([]int32, coarse.NX)}
	for x := range fine.NX {
		at, w := a.Between(x)
		c.coarse[x], c.weight[x] = int32(at), w
	}
	for k := range c.taps {
		c.taps[k] = make([]float32, coarse.NX)
	}
	c.lo, c.hi = coarse.InteriorColumns()
	for x := c.lo; x < c.hi; x++ {
		first, n := a.Around(x)
		end := first + n
		first = max(0, first)
		c.first[x] = int32(first)
		for k := range n {
			if first+k < min(end, fine.NX) {
				c.taps[k][x] = a.Weight(x, first+k)
			}
		}
	}
	return c
}

// gather restricts a row of column sums t to dst.
func (c *columns) gather(dst, t []float32, gain float32) {
	w0, w1, w2, w3 := c.taps[0], c.taps[1], c.taps[2], c.taps[3]
	for x := c.lo; x < c.hi; x++ {
		at := int(c.first[x])
		v := t[at : at+4 : at+4]
		r := kernel.FMA(w3[x], v[3], kernel.FMA(w2[x], v[2], kernel.FMA(w1[x], v[1], w0[x]*v[0])))
		dst[x] = kernel.FMA(gain, r, 0)
	}
}

// between writes the values of fine columns [lo, hi) that lie between those of t, a row of coarse columns, to dst.
func (c *columns) between(dst, t []float32, lo, hi int) {
	dst, weight, coarse := dst[:hi], c.weight[:hi], c.coarse[:hi]
	for x := lo; x < hi; x++ {
		at := int(coarse[x])
		left, right := t[at], t[at+1]
		dst[x] = kernel.FMA(weight[x], right-left, left)
	}
}

// blend writes north + w (south - north) to dst.
func blend(dst, north, south []float32, w float32) {
	north, south = north[:len(dst)], south[:len(dst)]
	for x := range dst {
		dst[x] = kernel.FMA(w, south[x]-north[x], north[x])
	}
}

// weigh adds w*d to dst, or sets dst to it.
func weigh(dst, d []float32, w float32, set bool) {
	d = d[:len(dst)]
	if set {
		for x := range dst {
			dst[x] = w * d[x]
		}
		return
	}
	for x := range dst {
		dst[x] = kernel.FMA(w, d[x], dst[x])
	}
}
