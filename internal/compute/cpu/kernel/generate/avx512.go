package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/compute/cpu/operator"
	"jacobi/solver"
)

// avx512 writes for 32 registers of 64 bytes: three rows of a block are in 0-11, temporaries in 12-15 and 24-27, sums
// and constants between.
type avx512 struct {
	*generator
	t       solver.DType
	zmm     [32]reg.VecPhysical
	quarter reg.VecPhysical
	acc     reg.VecPhysical
	start   reg.VecPhysical // smallest normal number
	ones    reg.VecPhysical // all bits set
	one     reg.VecPhysical // 1
	limit   reg.VecPhysical // for ifTiny
	ops     arithmetic
	align   func(...operand.Op)
	h, q    reg.VecPhysical // weights of the general operator
}

// arithmetic holds the instructions for a type of value.
type arithmetic struct {
	add, sub, mul, fma, fmaStart, fmaLess, mov func(...operand.Op)
	fmaLessKept                                func(c, a, k, b operand.Op)
}

func newAVX512(t solver.DType) machine {
	m := &avx512{t: t}
	m.zmm = [32]reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12,
		reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27,
		reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}
	m.acc, m.quarter, m.start, m.ones, m.limit = m.zmm[16], m.zmm[17], m.zmm[19], m.zmm[20], m.zmm[21]
	m.one = m.zmm[29]
	m.h, m.q = m.zmm[17], m.zmm[18]
	return m
}

func (m *avx512) use(g *generator) {
	m.generator = g
	if m.t == solver.Float32 {
		m.ops = arithmetic{g.VADDPS, g.VSUBPS, g.VMULPS, g.VFMADD231PS, g.VFMADD213PS, g.VFMSUB213PS, g.VMOVUPS,
			g.VFMSUB213PS_Z}
		m.align = g.VALIGND
	} else {
		m.ops = arithmetic{g.VADDPD, g.VSUBPD, g.VMULPD, g.VFMADD231PD, g.VFMADD213PD, g.VFMSUB213PD, g.VMOVUPD,
			g.VFMSUB213PD_Z}
		m.align = g.VALIGNQ
	}
}

func (m *avx512) suffix() string   { return fmt.Sprintf("AVX512F%d", 8*m.t.Size()) }
func (m *avx512) vectorBytes() int { return 64 }
func (m *avx512) lanes() int       { return 64 / m.t.Size() }

func (m *avx512) line(i int) blockRegs { return blockRegs(m.zmm[i%3*4 : i%3*4+4]) }

// spread declares a constant of the type and loads it into all lanes.
func (m *avx512) spread(name string, v operand.Constant, r reg.VecPhysical) {
	if m.t == solver.Float32 {
		m.VBROADCASTSS(m.constant(name, 1, v), r)
	} else {
		m.VBROADCASTSD(m.constant(name, 1, v), r)
	}
}

func (m *avx512) prologue(v variant, weights reg.Register) {
	g, size := m.generator, m.t.Size()
	m.spread("one", bits(size, 1), m.one)
	if v.operator != kernel.Plain {
		if v.operator == kernel.General {
			m.ops.mov(operand.Mem{Base: weights}, m.h)
			m.ops.mov(operand.Mem{Base: weights, Disp: m.vectorBytes()}, m.q)
		}
		m.spread("smallest", float(size, smallest(size)), m.start)
		return
	}
	m.spread("quarter", float(size, operator.Quarter), m.quarter)
	m.spread("smallest", float(size, smallest(size)), m.start)
	// Twice the bits drops the sign; less one makes 0 large.
	double := func(v float64) operand.Constant {
		if size == 4 {
			return operand.U32(2*math.Float32bits(float32(v)) - 1)
		}
		return operand.U64(2*math.Float64bits(v) - 1)
	}
	m.spread("tiny", double(power(tinyExponent[size])), m.limit)
	g.VPTERNLOGD(operand.U8(0xff), m.ones, m.ones, m.ones)
	m.spread("sign", bits(size, math.Copysign(0, -1)), m.zmm[22])
	m.spread("small", float(size, 4*smallest(size)), m.zmm[23])
	m.spread("doubleSmall", double(4*smallest(size)), m.zmm[28])
}

// laneMasks hold the masks of the vectors of a block.
var laneMasks = [4]reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4}

func (m *avx512) load(r reg.VecPhysical, p operand.Mem) { m.ops.mov(p, r) }

func (m *avx512) loadAcc(acc operand.Mem, restart reg.GPVirtual) {
	g := m.generator
	keep := g.GP64()
	g.LEAQ(operand.Mem{Base: restart, Disp: -1}, keep) // all bits set, or none to restart
	g.KMOVW(keep.As32(), reg.K5)
	if m.t == solver.Float32 {
		g.VMOVUPS_Z(acc, reg.K5, m.acc)
	} else {
		g.VMOVUPD_Z(acc, reg.K5, m.acc)
	}
}

func (m *avx512) storeAcc(acc operand.Mem) { m.ops.mov(m.acc, acc) }

func (m *avx512) clearAcc() { m.VPXORD(m.acc, m.acc, m.acc) }

func (m *avx512) ifTiny(sample operand.Mem, label operand.LabelRef) {
	m.ops.mov(sample, m.zmm[12])
	m.below(m.zmm[12], m.limit, reg.K6)
	m.KORTESTW(reg.K6, reg.K6)
	m.JNE(label)
}

// below sets k where r is not 0 and small: where twice its bits, less one, are below limit. It overwrites r.
func (m *avx512) below(r, limit reg.VecPhysical, k reg.OpmaskPhysical) {
	if m.t == solver.Float32 {
		m.VPADDD(r, r, r)
		m.VPADDD(m.ones, r, r)
		m.VPCMPUD(operand.U8(1), limit, r, k)
	} else {
		m.VPADDQ(r, r, r)
		m.VPADDQ(m.ones, r, r)
		m.VPCMPUQ(operand.U8(1), limit, r, k)
	}
}

// quarterOf sets n = x * quarter.
func (m *avx512) quarterOf(x, n reg.VecPhysical, tiny bool) {
	if tiny {
		m.scaleTiny(x, n)
	} else {
		m.ops.mul(m.quarter, x, n)
	}
}

// scaleTiny sets n = x * quarter by operations that are fast for every x. The product may be denormal where |x| <
// 4*smallest. There x is added to 4*smallest of its sign, which rounds x to a multiple of 4 times the smallest denormal
// number, so that a quarter of the sum is exact and normal. The distance of that quarter from smallest is an integer in
// units of the smallest denormal number, and this integer is the bit pattern of the result without its sign.
func (m *avx512) scaleTiny(x, n reg.VecPhysical) {
	o, t, u, rest := m.ops, m.zmm[24], m.zmm[25], reg.K7
	o.mov(x, t)
	m.below(t, m.zmm[28], reg.K6)
	m.KNOTW(reg.K6, rest)
	m.VPANDD(m.zmm[22], x, t) // sign
	m.VPORD(m.zmm[23], t, u)
	o.add(x, u, u)
	o.mul(m.quarter, u, u)
	m.VPORD(m.start, t, n)
	if m.t == solver.Float32 {
		m.VPSUBD(n, u, u)
	} else {
		m.VPSUBQ(n, u, u)
	}
	m.VPORD(t, u, n)
	o.mul(m.quarter, x, rest, n)
}

// subtractTiny sets d = n - c, or 0 where both are so small that the square of d is far below the last place of any sum
// but d may be denormal.
func (m *avx512) subtractTiny(n, c, d reg.VecPhysical) {
	t, rest := m.zmm[24], reg.K7
	m.VPORD(n, c, t)
	m.below(t, m.limit, reg.K6)
	m.KNOTW(reg.K6, rest)
	if m.t == solver.Float32 {
		m.VSUBPS_Z(c, n, rest, d)
	} else {
		m.VSUBPD_Z(c, n, rest, d)
	}
}

func (m *avx512) row(n, c, s blockRegs, mem rowMem, v variant) {
	o := m.ops
	store := o.mov
	if v.stream {
		store = func(ops ...operand.Op) { m.VMOVNTPS(ops[0], ops[1]) }
	}
	t := m.zmm[12:16]
	// West and east neighbours of vector j: vectors j-1 and j+1, at the ends shifted by a lane.
	o.mov(mem.east, t[3])
	m.align(operand.U8(1), c[0], t[3], t[3])
	m.align(operand.U8(m.lanes()-1), mem.carry, c[3], t[0])
	o.mov(c[3], mem.carry)
	if v.termed() {
		m.terms(n, c, s, t[0], t[3], mem, v, store)
		return
	}
	// Two units of an AMD core add, and two others multiply. Two sums and the differences below go to the latter, which
	// have less to do. 1*west + east is rounded as west + east.
	u, one := m.operator(), m.operator()
	one.Add = func(a operand.Op, b, _ reg.VecPhysical) { o.fmaStart(a, m.one, b) }
	one.Neighbours(c[1], t[0], t[0])
	u.Neighbours(c[2], c[0], t[1])
	u.Neighbours(c[3], c[1], t[2])
	one.Neighbours(c[2], t[3], t[3])
	for j := range n {
		u.Neighbours(s[j], n[j], n[j])
	}
	if v.swept {
		m.loadMasks(mem.swept)
	}
	if v.operator == kernel.General {
		for j := range n {
			u.General(t[j], n[j], mem.values[0][j])
		}
	} else {
		for j := range n {
			u.Sum(n[j], t[j], t[j])
		}
	}
	for j := range n {
		switch {
		case v.operator == kernel.General:
		case v.swept && !v.tiny:
			o.mov(c[j], n[j])
			o.mul(m.quarter, t[j], laneMasks[j], n[j])
		default:
			u.Average(t[j], n[j], v.tiny)
		}
		if v.swept && (v.operator == kernel.General || v.tiny) {
			m.blend(c[j], n[j], laneMasks[j])
		}
		store(n[j], mem.dst[j])
	}
	if v.bare {
		return
	}
	for j := range n {
		switch {
		case v.tiny:
			m.subtractTiny(n[j], c[j], t[j])
		case v.operator == kernel.General:
			o.sub(c[j], n[j], t[j])
		// As n - c: the product is exact or denormal, and then only one of n and c matters for the sums.
		case v.swept:
			o.fmaLessKept(c[j], m.quarter, laneMasks[j], t[j])
		default:
			o.fmaLess(c[j], m.quarter, t[j])
		}
	}
	m.addSquares(t)
}

// addSquares adds the squares of t to the sums. Pairs of squares begin with the smallest normal number: no result is
// denormal.
func (m *avx512) addSquares(t []reg.VecPhysical) {
	o := m.ops
	o.fmaStart(m.start, t[0], t[0])
	o.fmaStart(m.start, t[2], t[2])
	o.fma(t[1], t[1], t[0])
	o.fma(t[3], t[3], t[2])
	o.add(t[2], t[0], t[0])
	o.add(t[0], m.acc, m.acc)
}

// terms is the rest of row for an operator of terms. west and east are the neighbours of the first and of the last
// vector.
func (m *avx512) terms(n, c, s blockRegs, west, east reg.VecPhysical, mem rowMem, v variant,
	store func(...operand.Op)) {
	if v.swept {
		m.loadMasks(mem.swept)
	}
	fma := func(weight operand.Op, value, sum reg.VecPhysical) reg.VecPhysical {
		m.ops.fma(weight, value, sum)
		return sum
	}
	sums := m.zmm[24:28]
	west4, east4 := [4]reg.VecPhysical{west, c[0], c[1], c[2]}, [4]reg.VecPhysical{c[1], c[2], c[3], east}
	for j := range n {
		u := operator.Terms[operand.Op, reg.VecPhysical]{Fma: fma, Into: fma}
		u.Load = func(b operand.Op) reg.VecPhysical {
			m.ops.mov(b, sums[j])
			return sums[j]
		}
		u.Update(v.operator, mem.vector(j), west4[j], east4[j], n[j], s[j])
		if v.swept {
			m.blend(c[j], sums[j], laneMasks[j])
		}
		store(sums[j], mem.dst[j])
	}
	if v.bare {
		return
	}
	for j := range n {
		m.ops.sub(c[j], sums[j], sums[j])
	}
	m.addSquares(sums)
}

func (m *avx512) operator() operator.Operator[operand.Op, reg.VecPhysical] {
	return operator.Operator[operand.Op, reg.VecPhysical]{
		Add:      func(a operand.Op, b, to reg.VecPhysical) { m.ops.add(a, b, to) },
		Subtract: func(a, b, to reg.VecPhysical) { m.ops.sub(a, b, to) },
		Quarter:  m.quarterOf,
		Blend: func(s, n reg.VecPhysical) reg.VecPhysical {
			m.ops.fmaStart(s, m.q, n)
			return n
		},
		Scale: func(b operand.Op, n reg.VecPhysical) reg.VecPhysical {
			m.ops.fmaStart(b, m.h, n)
			return n
		},
	}
}

// loadMasks sets the masks of the vectors of a block.
func (m *avx512) loadMasks(swept blockMem) {
	for j, k := range laneMasks {
		if m.t == solver.Float32 {
			m.KMOVW(swept[j], k)
		} else {
			m.KMOVB(swept[j], k)
		}
	}
}

// blend sets n to c where the mask is clear.
func (m *avx512) blend(c, n reg.VecPhysical, k reg.OpmaskPhysical) {
	if m.t == solver.Float32 {
		m.VBLENDMPS(n, c, k, n)
	} else {
		m.VBLENDMPD(n, c, k, n)
	}
}
