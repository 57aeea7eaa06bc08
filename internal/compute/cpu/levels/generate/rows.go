package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// add writes the function for dst = a + x e with float32 values e in B; for float32, x is 1.
func (g *generator) add() {
	g.function("add")
	dst, a, e := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	if g.Size == 8 {
		g.constant(argX, g.V[0])
	}
	g.loop(func() {
		if g.Size == 4 {
			g.Mov(g.at(a, 0), g.V[1])
			g.Add(g.at(e, 0), g.V[1], g.V[1])
		} else {
			g.VCVTPS2PD(g.sized(e, 0, 4), g.V[1])
			g.FMA213(g.at(a, 0), g.V[0], g.V[1])
		}
		g.Mov(g.V[1], g.at(dst, 0))
	})
}

// narrow writes the function for dst = x a, rounded to float32.
func (g *generator) narrow() {
	g.function("narrow")
	dst, a := g.pointer(argDst), g.pointer(argA)
	g.constant(argX, g.V[0])
	g.loop(func() {
		g.Mul(g.at(a, 0), g.V[0], g.V[1])
		var half operand.Op = g.V[1].AsX()
		if g.Wide {
			half = g.V[1].AsY()
			g.VCVTPD2PS(g.V[1], half)
		} else {
			g.VCVTPD2PSY(g.V[1], half)
		}
		g.VMOVUPS(half, g.sized(dst, 0, 4))
	})
}

// squares writes the function that adds, for each group of four values of A, the sum of their squares to four equal
// values of dst. n is a multiple of a vector; X is the smallest normal number.
func (g *generator) squares() {
	g.function("squares")
	dst, a := g.pointer(argDst), g.pointer(argA)
	least, d, even, odd := g.V[0], g.V[1], g.V[2], g.V[3]
	g.constant(argX, least)
	g.loop(func() {
		g.Mov(g.at(a, 0), d)
		if g.Wide {
			g.VPERMILPD(operand.U8(0), d, even)
			g.VPERMILPD(operand.U8(0xff), d, odd)
		} else {
			g.VPERMILPD(operand.U8(0), d, even)
			g.VPERMILPD(operand.U8(0xf), d, odd)
		}
		g.FMA213(least, even, even)
		g.VFMADD231PD(odd, odd, even)
		g.VPERMPD(operand.U8(0x4e), even, odd) // the other pair of the group
		g.Add(odd, even, even)
		g.Add(g.at(dst, 0), even, even)
		g.Mov(even, g.at(dst, 0))
	})
}

// products writes the function that adds, for each group of four values of A and of B, the sum of their products to
// four equal values of dst. n is a multiple of a vector.
func (g *generator) products() {
	g.function("products")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	v, w, even, odd, left, right := g.V[0], g.V[1], g.V[2], g.V[3], g.V[4], g.V[5]
	first, second := operand.U8(0), operand.U8(0xf)
	if g.Wide {
		second = operand.U8(0xff)
	}
	g.loop(func() {
		g.Mov(g.at(a, 0), v)
		g.Mov(g.at(b, 0), w)
		g.VPERMILPD(first, v, even)
		g.VPERMILPD(first, w, left)
		g.VPERMILPD(second, v, odd)
		g.VPERMILPD(second, w, right)
		g.Mul(left, even, even)
		g.VFMADD231PD(right, odd, even)
		g.VPERMPD(operand.U8(0x4e), even, odd) // the other pair of the group
		g.Add(odd, even, even)
		g.Add(g.at(dst, 0), even, even)
		g.Mov(even, g.at(dst, 0))
	})
}

// subtract writes the function for dst = a - b.
func (g *generator) subtract() {
	g.function("subtract")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	g.loop(func() {
		g.Mov(g.at(a, 0), g.V[0])
		g.Sub(g.at(b, 0), g.V[0], g.V[0])
		g.Mov(g.V[0], g.at(dst, 0))
	})
}

// step writes the function for a = x (dst - b) + y a and then dst = b + a, where A and B are a and b; n is a multiple
// of a vector.
func (g *generator) step() {
	g.function("step")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	g.constant(argX, g.V[0])
	g.constant(argY, g.V[1])
	g.loop(func() {
		g.Mov(g.at(b, 0), g.V[2])
		g.Mov(g.at(dst, 0), g.V[3])
		g.Sub(g.V[2], g.V[3], g.V[3])
		g.Mul(g.at(a, 0), g.V[1], g.V[4])
		g.FMA213(g.V[4], g.V[0], g.V[3])
		g.Mov(g.V[3], g.at(a, 0))
		g.Add(g.V[2], g.V[3], g.V[3])
		g.Mov(g.V[3], g.at(dst, 0))
	})
}

// scale writes the function for dst = x a.
func (g *generator) scale() {
	g.function("scale")
	dst, a := g.pointer(argDst), g.pointer(argA)
	g.constant(argX, g.V[0])
	g.loop(func() {
		g.Mul(g.at(a, 0), g.V[0], g.V[1])
		g.Mov(g.V[1], g.at(dst, 0))
	})
}

// addScaled writes the function for dst = dst + x a; n is a multiple of a vector.
func (g *generator) addScaled() {
	g.function("addScaled")
	dst, a := g.pointer(argDst), g.pointer(argA)
	g.constant(argX, g.V[0])
	g.loop(func() {
		g.Mov(g.at(a, 0), g.V[1])
		g.FMA213(g.at(dst, 0), g.V[0], g.V[1])
		g.Mov(g.V[1], g.at(dst, 0))
	})
}
