package main

import "jacobi/internal/compute/cpu/neon"

// scale writes the function for dst = x a.
func (g *arm64) scale() {
	g.function("scale")
	p := g.pointers(argDst, argA)
	x, v := spread(24), from(0)
	g.constant(argX, x[0])
	g.loop(func() {
		g.load(p[1], 0, v)
		g.each(g.Multiply, x, v, v)
		g.store(v, p[0])
	})
}

// addScaled writes the function for dst = dst + x a; n is a multiple of 16.
func (g *arm64) addScaled() {
	g.function("addScaled")
	p := g.pointers(argDst, argA)
	x, v, d := spread(24), from(0), from(4)
	g.constant(argX, x[0])
	g.loop(func() {
		g.load(p[1], 0, v)
		g.load(p[0], 0, d)
		g.each(g.MultiplyAdd, x, v, d)
		g.store(d, p[0])
	})
}

// blend writes the function for dst = a + x (b - a).
func (g *arm64) blend() {
	g.function("blend")
	p := g.pointers(argDst, argA, argB)
	x, a, b := spread(24), from(0), from(4)
	g.constant(argX, x[0])
	g.loop(func() {
		g.load(p[1], 0, a)
		g.load(p[2], 0, b)
		g.each(g.Subtract, a, b, b)
		g.each(g.MultiplyAdd, x, b, a)
		g.store(a, p[0])
	})
}

// fetch loads, for each of four indices, the values of base from there on: four by FMOVQ, two by FMOVD. The first
// index is at an offset from the present one in regAddress.
func (g *arm64) fetch(load, base string, offset int, to group) {
	for l, r := range to {
		g.Op("MOVW", neon.Memory(regAddress, offset+4*l), regValue)
		g.Op("ADD", regValue+"<<2", base, regValue)
		g.Op(load, neon.Memory(regValue, 0), r.Quad())
	}
}

// gather writes the function of columns.gather: A is t, B the indices, C to F the weights, X the gain.
func (g *arm64) gather() {
	g.function("gather")
	p := g.pointers(argDst, argA, argB, argC, argD, argE, argF)
	t, index, weights := p[1], p[2], p[3:]
	gain, rows, even, odd := neon.Reg(24), from(0), from(4), from(8)
	g.constant(argX, gain)
	sums, first, w := from(12), from(16), from(20)
	g.loop(func() {
		for j, sum := range sums {
			offset := j * neon.VectorBytes
			g.address(index, neon.Float32)
			g.fetch("FMOVQ", t, offset, rows)
			for k := range 2 { // pairs of rows, then pairs of these
				g.Transpose(neon.Float32, rows[2*k+1], rows[2*k], even[k], odd[k])
			}
			g.Transpose(neon.Float64, even[1], even[0], first[0], first[2])
			g.Transpose(neon.Float64, odd[1], odd[0], first[1], first[3])
			for k, base := range weights {
				g.address(base, neon.Float32)
				g.Load(regAddress, offset, w[k])
			}
			g.Multiply(g.t, w[0], first[0], even[0])
			for k := 1; k < 4; k++ {
				g.MultiplyAdd(g.t, w[k], first[k], even[0])
			}
			g.Zero(sum)
			g.MultiplyAdd(g.t, gain, even[0], sum)
		}
		g.store(sums, p[0])
	})
}

// between writes the function of columns.between: A is t, B the indices, C the weights.
func (g *arm64) between() {
	g.function("between")
	p := g.pointers(argDst, argA, argB, argC)
	t, index, weight := p[1], p[2], p[3]
	rows, pair, west, east, w := from(0), group{4, 5}, from(8), from(12), from(16)
	g.loop(func() {
		g.address(index, neon.Float32)
		for j := range west {
			g.fetch("FMOVD", t, j*neon.VectorBytes, rows)
			for k := range pair {
				g.Op("VZIP1", rows[2*k+1].Of(neon.Float64), rows[2*k].Of(neon.Float64), pair[k].Of(neon.Float64))
			}
			g.Even(g.t, pair[1], pair[0], west[j])
			g.Odd(g.t, pair[1], pair[0], east[j])
		}
		g.load(weight, 0, w)
		g.each(g.Subtract, west, east, east)
		g.each(g.MultiplyAdd, w, east, west)
		g.store(west, p[0])
	})
}
