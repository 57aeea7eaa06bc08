package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// add writes the function for dst = a + x e with float32 values e in B; for float32, x is 1.
func (g *generator) add() {
	g.function("add")
	dst, a, e := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	if g.size == 8 {
		g.constant(argX, g.v[0])
	}
	g.loop(func() {
		if g.size == 4 {
			g.mov(g.at(a, 0), g.v[1])
			g.plus(g.at(e, 0), g.v[1], g.v[1])
		} else {
			g.VCVTPS2PD(g.sized(e, 0, 4), g.v[1])
			g.fma(g.at(a, 0), g.v[0], g.v[1])
		}
		g.mov(g.v[1], g.at(dst, 0))
	})
}

// narrow writes the function for dst = x a, rounded to float32.
func (g *generator) narrow() {
	g.function("narrow")
	dst, a := g.pointer(argDst), g.pointer(argA)
	g.constant(argX, g.v[0])
	g.loop(func() {
		g.times(g.at(a, 0), g.v[0], g.v[1])
		if g.wide {
			g.VCVTPD2PS(g.v[1], g.half[1])
		} else {
			g.VCVTPD2PSY(g.v[1], g.half[1])
		}
		g.VMOVUPS(g.half[1], g.sized(dst, 0, 4))
	})
}

// squares writes the function that adds, for each group of four values of A, the sum of their squares to four equal
// values of dst. n is a multiple of a vector; X is the smallest normal number.
func (g *generator) squares() {
	g.function("squares")
	dst, a := g.pointer(argDst), g.pointer(argA)
	least, d, even, odd := g.v[0], g.v[1], g.v[2], g.v[3]
	g.constant(argX, least)
	g.loop(func() {
		g.mov(g.at(a, 0), d)
		if g.wide {
			g.VPERMILPD(operand.U8(0), d, even)
			g.VPERMILPD(operand.U8(0xff), d, odd)
		} else {
			g.VPERMILPD(operand.U8(0), d, even)
			g.VPERMILPD(operand.U8(0xf), d, odd)
		}
		g.fma(least, even, even)
		g.VFMADD231PD(odd, odd, even)
		g.VPERMPD(operand.U8(0x4e), even, odd) // the other pair of the group
		g.plus(odd, even, even)
		g.plus(g.at(dst, 0), even, even)
		g.mov(even, g.at(dst, 0))
	})
}

// products writes the function that adds, for each group of four values of A and of B, the sum of their products to
// four equal values of dst. n is a multiple of a vector.
func (g *generator) products() {
	g.function("products")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	v, w, even, odd, left, right := g.v[0], g.v[1], g.v[2], g.v[3], g.v[4], g.v[5]
	first, second := operand.U8(0), operand.U8(0xf)
	if g.wide {
		second = operand.U8(0xff)
	}
	g.loop(func() {
		g.mov(g.at(a, 0), v)
		g.mov(g.at(b, 0), w)
		g.VPERMILPD(first, v, even)
		g.VPERMILPD(first, w, left)
		g.VPERMILPD(second, v, odd)
		g.VPERMILPD(second, w, right)
		g.times(left, even, even)
		g.VFMADD231PD(right, odd, even)
		g.VPERMPD(operand.U8(0x4e), even, odd) // the other pair of the group
		g.plus(odd, even, even)
		g.plus(g.at(dst, 0), even, even)
		g.mov(even, g.at(dst, 0))
	})
}

// subtract writes the function for dst = a - b.
func (g *generator) subtract() {
	g.function("subtract")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	g.loop(func() {
		g.mov(g.at(a, 0), g.v[0])
		g.minus(g.at(b, 0), g.v[0], g.v[0])
		g.mov(g.v[0], g.at(dst, 0))
	})
}

// step writes the function for a = x (dst - b) + y a and then dst = b + a, where A and B are a and b; n is a multiple
// of a vector.
func (g *generator) step() {
	g.function("step")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	g.constant(argX, g.v[0])
	g.constant(argY, g.v[1])
	g.loop(func() {
		g.mov(g.at(b, 0), g.v[2])
		g.mov(g.at(dst, 0), g.v[3])
		g.minus(g.v[2], g.v[3], g.v[3])
		g.times(g.at(a, 0), g.v[1], g.v[4])
		g.fma(g.v[4], g.v[0], g.v[3])
		g.mov(g.v[3], g.at(a, 0))
		g.plus(g.v[2], g.v[3], g.v[3])
		g.mov(g.v[3], g.at(dst, 0))
	})
}

// scale writes the function for dst = x a.
func (g *generator) scale() {
	g.function("scale")
	dst, a := g.pointer(argDst), g.pointer(argA)
	g.constant(argX, g.v[0])
	g.loop(func() {
		g.times(g.at(a, 0), g.v[0], g.v[1])
		g.mov(g.v[1], g.at(dst, 0))
	})
}

// addScaled writes the function for dst = dst + x a; n is a multiple of a vector.
func (g *generator) addScaled() {
	g.function("addScaled")
	dst, a := g.pointer(argDst), g.pointer(argA)
	g.constant(argX, g.v[0])
	g.loop(func() {
		g.mov(g.at(a, 0), g.v[1])
		g.fma(g.at(dst, 0), g.v[0], g.v[1])
		g.mov(g.v[1], g.at(dst, 0))
	})
}
