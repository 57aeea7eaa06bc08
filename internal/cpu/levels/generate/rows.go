package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The order of the fields of rowArgs, which are 8 bytes each: pointers, the number of values, constants, and the
// pointers of sweeps alone. A constant has the type of the field in its lowest bytes.
const (
	argDst = iota
	argA
	argB
	argC
	argD
	argE
	argF
	argN
	argX
	argY
	argZ
	argAhead
	argDst2
	argAhead2
)

// generator writes functions for one instruction set and one type of value. Each takes a pointer to rowArgs and works
// through n values, n at least one vector. The last vector may overlap the one before it.
type generator struct {
	*build.Context
	wide  bool // AVX-512
	size  int  // bytes of a value
	v     [16]reg.VecPhysical
	half  [16]reg.VecPhysical // the lower halves
	bytes int                 // of a vector
	args  reg.GPVirtual
	i     reg.GPVirtual // index of the vector's first value
}

func newGenerator(c *build.Context, wide bool, size int) *generator {
	g := &generator{Context: c, wide: wide, size: size, bytes: 32}
	y := [16]reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10,
		reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	x := [16]reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7, reg.X8, reg.X9, reg.X10,
		reg.X11, reg.X12, reg.X13, reg.X14, reg.X15}
	z := [16]reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10,
		reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}
	g.v, g.half = y, x
	if wide {
		g.v, g.half, g.bytes = z, y, 64
	}
	return g
}

// op returns the instruction of the type: single for float32, double for float64.
func (g *generator) op(single, double func(...operand.Op), ops ...operand.Op) {
	if g.size == 4 {
		single(ops...)
	} else {
		double(ops...)
	}
}

func (g *generator) mov(ops ...operand.Op)   { g.op(g.VMOVUPS, g.VMOVUPD, ops...) }
func (g *generator) plus(ops ...operand.Op)  { g.op(g.VADDPS, g.VADDPD, ops...) }
func (g *generator) minus(ops ...operand.Op) { g.op(g.VSUBPS, g.VSUBPD, ops...) }
func (g *generator) times(ops ...operand.Op) { g.op(g.VMULPS, g.VMULPD, ops...) }

// fma sets x = x*y + z.
func (g *generator) fma(z operand.Op, y, x reg.VecPhysical) {
	g.op(g.VFMADD213PS, g.VFMADD213PD, z, y, x)
}

// zero sets v to +0.
func (g *generator) zero(v reg.VecPhysical) {
	if g.wide {
		g.VPXORD(v, v, v)
	} else {
		g.VPXOR(v, v, v)
	}
}

// function begins a function.
func (g *generator) function(name string) {
	isa := "AVX2"
	if g.wide {
		isa = "AVX512"
	}
	g.Function(fmt.Sprintf("%s%sF%d", name, isa, 8*g.size))
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(r *byte)")
	g.args = g.GP64()
	g.Load(g.Param("r"), g.args)
}

// pointer loads a pointer of the arguments.
func (g *generator) pointer(arg int) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(operand.Mem{Base: g.args, Disp: 8 * arg}, r)
	return r
}

// constant spreads a constant of the arguments.
func (g *generator) constant(arg int, v reg.VecPhysical) {
	g.op(g.VBROADCASTSS, g.VBROADCASTSD, operand.Mem{Base: g.args, Disp: 8 * arg}, v)
}

// at returns the values of a row at the present index, shifted by a number of values.
func (g *generator) at(base reg.GPVirtual, shift int) operand.Mem {
	return g.sized(base, shift, g.size)
}

func (g *generator) sized(base reg.GPVirtual, shift, size int) operand.Mem {
	return operand.Mem{Base: base, Index: g.i, Scale: uint8(size), Disp: shift * size}
}

// loop ends a function with a loop of body over n values.
func (g *generator) loop(body func()) {
	n, last, step := g.pointer(argN), g.GP64(), g.bytes/g.size
	g.i = g.GP64()
	g.XORQ(g.i, g.i)
	g.LEAQ(operand.Mem{Base: n, Disp: -step}, last)
	g.Label("loop")
	body()
	g.ADDQ(operand.Imm(uint64(step)), g.i)
	g.CMPQ(g.i, last)
	g.JLE(operand.LabelRef("loop"))
	g.CMPQ(g.i, n)
	g.JGE(operand.LabelRef("done"))
	g.MOVQ(last, g.i)
	g.JMP(operand.LabelRef("loop"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

// sweep writes the function for dst = u + w d: A is u, B the row above, C the row below, D the source; X, Y, Z are h,
// q, w. It fetches the row argAhead into the cache meanwhile.
func (g *generator) sweep(name string, source bool) {
	g.function(name)
	r := row{u: g.pointer(argA), dst: g.pointer(argDst)}
	north, south, ahead := g.pointer(argB), g.pointer(argC), g.pointer(argAhead)
	g.coefficients(source, &r)
	g.loop(func() {
		g.PREFETCHT1(g.at(ahead, 0))
		c := g.v[4]
		g.mov(g.at(north, 0), g.v[6])
		g.mov(g.at(r.u, 0), c)
		g.defect(&r, c, g.v[6], g.at(south, 0), g.v[7])
		g.fma(c, g.v[2], g.v[7])
		g.mov(g.v[7], g.at(r.dst, 0))
	})
}

// pair writes the function that does sweep for two rows: A and E are u, B is the row above them, C the row below, D and
// F are the sources, dst and dst2 the results. It loads once for both rows what each of them needs of the other. It
// fetches the rows argAhead and argAhead2 into the cache meanwhile.
func (g *generator) pair(name string, source bool) {
	g.function(name)
	upper, lower := row{u: g.pointer(argA), dst: g.pointer(argDst)}, row{u: g.pointer(argE), dst: g.pointer(argDst2)}
	north, south := g.pointer(argB), g.pointer(argC)
	ahead, ahead2 := g.pointer(argAhead), g.pointer(argAhead2)
	g.coefficients(source, &upper)
	if source {
		lower.b = g.pointer(argF)
	}
	g.loop(func() {
		g.PREFETCHT1(g.at(ahead, 0))
		g.PREFETCHT1(g.at(ahead2, 0))
		c, d := g.v[4], g.v[5]
		g.mov(g.at(north, 0), g.v[6])
		g.mov(g.at(upper.u, 0), c)
		g.mov(g.at(lower.u, 0), d)
		g.defect(&upper, c, g.v[6], d, g.v[7])
		g.fma(c, g.v[2], g.v[7])
		g.mov(g.v[7], g.at(upper.dst, 0))
		g.defect(&lower, d, c, g.at(south, 0), g.v[7])
		g.fma(d, g.v[2], g.v[7])
		g.mov(g.v[7], g.at(lower.dst, 0))
	})
}

// defects writes the function for dst = d: A is u, B the row above, C the row below, D the source; X, Y are h, q.
func (g *generator) defects(name string, source bool) {
	g.function(name)
	r := row{u: g.pointer(argA), dst: g.pointer(argDst)}
	north, south := g.pointer(argB), g.pointer(argC)
	g.coefficients(source, &r)
	g.loop(func() {
		g.mov(g.at(north, 0), g.v[6])
		g.mov(g.at(r.u, 0), g.v[4])
		g.defect(&r, g.v[4], g.v[6], g.at(south, 0), g.v[7])
		g.mov(g.v[7], g.at(r.dst, 0))
	})
}

// row has the pointers to a row of u, of the source if there is one, and of the result.
type row struct{ u, b, dst reg.GPVirtual }

// coefficients loads h, q and w into v[0], v[1] and v[2], and the source of r, or else 0 into v[3].
func (g *generator) coefficients(source bool, r *row) {
	for k, arg := range []int{argX, argY, argZ} {
		g.constant(arg, g.v[k])
	}
	if source {
		r.b = g.pointer(argD)
	} else {
		g.zero(g.v[3])
	}
}

// defect sets t to d of row r, whose value is c, with the values above and below. It uses v[8].
func (g *generator) defect(r *row, c, north reg.VecPhysical, south operand.Op, t reg.VecPhysical) {
	s := g.v[8]
	g.mov(g.at(r.u, -1), s)
	g.plus(g.at(r.u, 1), s, s)
	g.plus(south, north, t)
	g.minus(s, t, t)
	g.fma(s, g.v[1], t)
	if r.b != nil {
		g.fma(g.at(r.b, 0), g.v[0], t)
	} else {
		g.fma(g.v[3], g.v[0], t)
	}
	g.minus(c, t, t)
}

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

// blend writes the function for dst = a + x (b - a).
func (g *generator) blend() {
	g.function("blend")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	g.constant(argX, g.v[0])
	g.loop(func() {
		g.mov(g.at(a, 0), g.v[1])
		g.mov(g.at(b, 0), g.v[2])
		g.minus(g.v[1], g.v[2], g.v[2])
		g.fma(g.v[1], g.v[0], g.v[2])
		g.mov(g.v[2], g.at(dst, 0))
	})
}

// window sets v[15] to the indices of the present vector less the first one, and returns the address of the value of
// base at the first one. Indices are not negative and do not fall. It uses v[14].
func (g *generator) window(base, index reg.GPVirtual) reg.GPVirtual {
	first, p := g.GP64(), g.GP64()
	g.MOVL(g.at(index, 0), first.As32())
	g.LEAQ(operand.Mem{Base: base, Index: first, Scale: 4}, p)
	g.VPBROADCASTD(g.at(index, 0), g.v[14])
	g.VMOVUPS(g.at(index, 0), g.v[15])
	g.VPSUBD(g.v[14], g.v[15], g.v[15])
	return p
}

// pick sets t to the values of the window p at the indices in v[15] plus shift. The indices are less than the lanes of
// a vector. All of the vector at p is read, so memory must go on behind the last value that is used.
func (g *generator) pick(p reg.GPVirtual, shift int, t reg.VecPhysical) {
	g.VMOVUPS(operand.Mem{Base: p, Disp: 4 * shift}, t)
	g.VPERMPS(t, g.v[15], t)
}

// pickWide is pick for indices less than the lanes of two vectors. With AVX2 the sign of v[14] is bit 3 of the index.
// It uses v[13].
func (g *generator) pickWide(p reg.GPVirtual, shift int, t reg.VecPhysical) {
	g.VMOVUPS(operand.Mem{Base: p, Disp: 4 * shift}, t)
	second := operand.Mem{Base: p, Disp: 4*shift + g.bytes}
	if g.wide {
		g.VPERMT2PS(second, g.v[15], t)
		return
	}
	g.VPERMPS(t, g.v[15], t)
	g.VPERMPS(second, g.v[15], g.v[13])
	g.VBLENDVPS(g.v[14], g.v[13], t, t)
}

// gather writes the function of columns.gather: A is t, B the indices, which grow by 2 at most from one to the next, C
// to F the weights, X the gain.
func (g *generator) gather() {
	g.function("gather")
	dst, t, index := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	weights := [4]reg.GPVirtual{g.pointer(argC), g.pointer(argD), g.pointer(argE), g.pointer(argF)}
	g.constant(argX, g.v[0])
	g.loop(func() {
		p := g.window(t, index)
		if !g.wide {
			g.VPSLLD(operand.U8(28), g.v[15], g.v[14])
		}
		for k, w := range weights {
			to := g.v[2+k]
			g.pickWide(p, k, to)
			if k == 0 {
				g.times(g.at(w, 0), to, g.v[1])
			} else {
				g.VFMADD231PS(g.at(w, 0), to, g.v[1])
			}
		}
		g.zero(g.v[2])
		g.fma(g.v[2], g.v[0], g.v[1])
		g.mov(g.v[1], g.at(dst, 0))
	})
}

// between writes the function of columns.between: A is t, B the indices, which grow by 1 at most from one to the next,
// C the weights.
func (g *generator) between() {
	g.function("between")
	dst, t, index, weight := g.pointer(argDst), g.pointer(argA), g.pointer(argB), g.pointer(argC)
	g.loop(func() {
		p := g.window(t, index)
		g.pick(p, 0, g.v[1])
		g.pick(p, 1, g.v[2])
		g.minus(g.v[1], g.v[2], g.v[2])
		g.mov(g.at(weight, 0), g.v[3])
		g.fma(g.v[1], g.v[3], g.v[2])
		g.mov(g.v[2], g.at(dst, 0))
	})
}
