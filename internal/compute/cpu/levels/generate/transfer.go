package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blend writes the function for dst = a + x (b - a).
func (g *generator) blend() {
	g.function("blend")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	g.constant(argX, g.V[0])
	g.loop(func() {
		g.Mov(g.at(a, 0), g.V[1])
		g.Mov(g.at(b, 0), g.V[2])
		g.Sub(g.V[1], g.V[2], g.V[2])
		g.FMA213(g.V[1], g.V[0], g.V[2])
		g.Mov(g.V[2], g.at(dst, 0))
	})
}

// window sets v[15] to the indices of the present vector less the first one, and returns the address of the value of
// base at the first one. Indices are not negative and do not fall. It uses v[14].
func (g *generator) window(base, index reg.GPVirtual) reg.GPVirtual {
	first, p := g.GP64(), g.GP64()
	g.MOVL(g.at(index, 0), first.As32())
	g.LEAQ(operand.Mem{Base: base, Index: first, Scale: 4}, p)
	g.VPBROADCASTD(g.at(index, 0), g.V[14])
	g.VMOVUPS(g.at(index, 0), g.V[15])
	g.VPSUBD(g.V[14], g.V[15], g.V[15])
	return p
}

// pick sets t to the values of the window p at the indices in v[15] plus shift. The indices are less than the lanes of
// a vector. All of the vector at p is read, so memory must go on behind the last value that is used.
func (g *generator) pick(p reg.GPVirtual, shift int, t reg.VecPhysical) {
	g.VMOVUPS(operand.Mem{Base: p, Disp: 4 * shift}, t)
	g.VPERMPS(t, g.V[15], t)
}

// pickWide is pick for indices less than the lanes of two vectors. With AVX2 the sign of v[14] is bit 3 of the index.
// It uses v[13].
func (g *generator) pickWide(p reg.GPVirtual, shift int, t reg.VecPhysical) {
	g.VMOVUPS(operand.Mem{Base: p, Disp: 4 * shift}, t)
	second := operand.Mem{Base: p, Disp: 4*shift + g.Bytes()}
	if g.Wide {
		g.VPERMT2PS(second, g.V[15], t)
		return
	}
	g.VPERMPS(t, g.V[15], t)
	g.VPERMPS(second, g.V[15], g.V[13])
	g.VBLENDVPS(g.V[14], g.V[13], t, t)
}

// gather writes the function of columns.gather: A is t, B the indices, which grow by 2 at most from one to the next, C
// to F the weights, X the gain.
func (g *generator) gather() {
	g.function("gather")
	dst, t, index := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	weights := [4]reg.GPVirtual{g.pointer(argC), g.pointer(argD), g.pointer(argE), g.pointer(argF)}
	g.constant(argX, g.V[0])
	g.loop(func() {
		p := g.window(t, index)
		if !g.Wide {
			g.VPSLLD(operand.U8(28), g.V[15], g.V[14])
		}
		for k, w := range weights {
			to := g.V[2+k]
			g.pickWide(p, k, to)
			if k == 0 {
				g.Mul(g.at(w, 0), to, g.V[1])
			} else {
				g.VFMADD231PS(g.at(w, 0), to, g.V[1])
			}
		}
		g.zero(g.V[2])
		g.FMA213(g.V[2], g.V[0], g.V[1])
		g.Mov(g.V[1], g.at(dst, 0))
	})
}

// between writes the function of columns.between: A is t, B the indices, which grow by 1 at most from one to the next,
// C the weights.
func (g *generator) between() {
	g.function("between")
	dst, t, index, weight := g.pointer(argDst), g.pointer(argA), g.pointer(argB), g.pointer(argC)
	g.loop(func() {
		p := g.window(t, index)
		g.pick(p, 0, g.V[1])
		g.pick(p, 1, g.V[2])
		g.Sub(g.V[1], g.V[2], g.V[2])
		g.Mov(g.at(weight, 0), g.V[3])
		g.FMA213(g.V[1], g.V[3], g.V[2])
		g.Mov(g.V[2], g.at(dst, 0))
	})
}
