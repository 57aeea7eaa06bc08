package main

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/cpu/kernel"
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
	limit   reg.VecPhysical // for ifTiny
	ops     arithmetic
	align   func(...operand.Op)
	h, q    reg.VecPhysical // weights of the general operator
}

// arithmetic holds the instructions for a type of value.
type arithmetic struct{ add, sub, mul, fma, fmaStart, mov func(...operand.Op) }

func newAVX512(t solver.DType) machine {
	m := &avx512{t: t}
	m.zmm = [32]reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12,
		reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27,
		reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}
	m.acc, m.quarter, m.start, m.ones, m.limit = m.zmm[16], m.zmm[17], m.zmm[19], m.zmm[20], m.zmm[21]
	m.h, m.q = m.zmm[17], m.zmm[18]
	return m
}

func (m *avx512) use(g *generator) {
	m.generator = g
	if m.t == solver.Float32 {
		m.ops = arithmetic{g.VADDPS, g.VSUBPS, g.VMULPS, g.VFMADD231PS, g.VFMADD213PS, g.VMOVUPS}
		m.align = g.VALIGND
	} else {
		m.ops = arithmetic{g.VADDPD, g.VSUBPD, g.VMULPD, g.VFMADD231PD, g.VFMADD213PD, g.VMOVUPD}
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

func (m *avx512) prologue(v variant, masks blockMem, weights reg.Register) {
	g, size := m.generator, m.t.Size()
	if v.general {
		m.ops.mov(operand.Mem{Base: weights}, m.h)
		m.ops.mov(operand.Mem{Base: weights, Disp: m.vectorBytes()}, m.q)
		m.spread("smallest", float(size, smallest(size)), m.start)
		return
	}
	m.spread("quarter", float(size, quarter), m.quarter)
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
	if !v.masked {
		return
	}
	for j, k := range laneMasks {
		t := m.zmm[12]
		m.ops.mov(masks[j], t)
		if m.t == solver.Float32 {
			g.VPMOVD2M(t, k)
		} else {
			g.VPMOVQ2M(t, k)
		}
	}
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

// scale sets n = x * quarter.
func (m *avx512) scale(x, n reg.VecPhysical, tiny bool) {
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
	u := operator{add: o.add, scale: m.scale}
	u.neighbours(c[1], t[0], t[0])
	u.neighbours(c[2], c[0], t[1])
	u.neighbours(c[3], c[1], t[2])
	u.neighbours(t[3], c[2], t[3])
	for j := range n {
		u.neighbours(s[j], n[j], n[j])
	}
	if v.swept {
		m.loadMasks(mem.swept)
	}
	if v.general {
		u := m.general()
		for j := range n {
			u.value(t[j], n[j], mem.source[j])
		}
	} else {
		for j := range n {
			u.sum(n[j], t[j], t[j])
		}
	}
	for j := range n {
		if !v.general {
			u.value(t[j], n[j], v.tiny)
		}
		if v.masked || v.swept {
			m.blend(c[j], n[j], laneMasks[j])
		}
		store(n[j], mem.dst[j])
	}
	for j := range n {
		if v.tiny {
			m.subtractTiny(n[j], c[j], t[j])
		} else {
			o.sub(c[j], n[j], t[j])
		}
	}
	// Pairs of squares, from the smallest normal number on: no result is denormal.
	o.fmaStart(m.start, t[0], t[0])
	o.fmaStart(m.start, t[2], t[2])
	o.fma(t[1], t[1], t[0])
	o.fma(t[3], t[3], t[2])
	o.add(t[2], t[0], t[0])
	o.add(t[0], m.acc, m.acc)
}

// general returns the general operator.
func (m *avx512) general() general {
	return general{
		sub:   m.ops.sub,
		blend: func(s, n reg.VecPhysical) { m.ops.fmaStart(s, m.q, n) },
		scale: func(b operand.Mem, n reg.VecPhysical) { m.ops.fmaStart(b, m.h, n) },
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

// collect writes the function that adds group sums to the limbs of a Collector. Adding to a biased limb toward minus
// infinity truncates a term to a multiple of the limb's last place.
func (m *avx512) collect() {
	var c kernel.Collector
	g := m.generator
	g.function("collect", "collect")
	p, acc, n := g.param("c"), g.param("acc"), g.param("n")
	scale, less, bound := m.zmm[6], m.zmm[7], m.zmm[8]
	g.VBROADCASTSD(field(p, unsafe.Offsetof(c.Scale)), scale)
	g.VBROADCASTSD(field(p, unsafe.Offsetof(c.Bias)), less)
	g.VBROADCASTSD(g.constant("bound", 1, operand.F64(kernel.Bound)), bound)
	var limb, bias [3]reg.VecPhysical
	for i := range limb {
		limb[i], bias[i] = m.zmm[i], m.zmm[3+i]
		g.VBROADCASTSD(g.constant(fmt.Sprintf("bias%d", i), 1, operand.F64(power(52+48*i))), bias[i])
		g.VMOVAPD(bias[i], limb[i])
	}
	g.KXNORW(reg.K1, reg.K1, reg.K1)
	g.Label("loop")
	x := m.zmm[9]
	if m.t == solver.Float32 {
		g.VCVTPS2PD(operand.Mem{Base: acc}, x)
	} else {
		g.VMOVUPD(operand.Mem{Base: acc}, x)
	}
	sum, h := m.zmm[10], m.zmm[11]
	g.VFMSUB213PD(less, scale, x)                      // x*scale - less
	g.VCMPPD(operand.U8(17), bound, x, reg.K1, reg.K1) // x < bound; not so for NaN
	for i := 2; i > 0; i-- {
		g.VADDPD_RD_SAE(x, limb[i], sum)
		g.VSUBPD(limb[i], sum, h)
		g.VMOVAPD(sum, limb[i])
		g.VSUBPD(h, x, x)
	}
	g.VADDPD_RD_SAE(x, limb[0], limb[0])
	g.ADDQ(operand.Imm(uint64(8*m.t.Size())), acc)
	g.SUBQ(operand.Imm(8), n)
	g.JNZ(operand.LabelRef("loop"))
	g.KMOVW(reg.K1, n.As32())
	g.CMPB(n.As8(), operand.U8(0xff))
	g.JNE(operand.LabelRef("refused"))
	for i := range limb {
		// The bits of two floats with the same exponent differ by their difference in units of the last place.
		to := field(p, unsafe.Offsetof(c.Limbs)+uintptr(i)*unsafe.Sizeof(c.Limbs[0]))
		g.VPSUBQ(bias[i], limb[i], limb[i])
		g.VPADDQ(to, limb[i], limb[i])
		g.VMOVDQU64(limb[i], to)
	}
	g.verdict()
}

// transposes writes pack and unpack.
func (m *avx512) transposes() {
	m.transpose("pack", func(j, lane int) (source, place int) {
		column := 4*lane + j
		return column / m.lanes(), column % m.lanes()
	})
	m.transpose("unpack", func(k, lane int) (source, place int) {
		column := k*m.lanes() + lane
		return column % 4, column / 4
	})
}

// transpose writes a function that permutes the values of each block: lane l of vector j comes from place p of vector
// v, (v, p) = from(j, l).
func (m *avx512) transpose(name string, from func(j, lane int) (source, place int)) {
	g := m.generator
	g.function(name, "transpose")
	dst, src, blocks := g.param("dst"), g.param("src"), g.param("blocks")
	// Each vector blends a permutation of vectors 0 and 1 with one of vectors 2 and 3.
	for j := range 4 {
		var index []operand.Constant
		var mask uint32
		for lane := range m.lanes() {
			source, place := from(j, lane)
			if source >= 2 {
				mask |= 1 << lane
			}
			if m.t == solver.Float32 {
				index = append(index, operand.U32(source%2*m.lanes()+place))
			} else {
				index = append(index, operand.U64(source%2*m.lanes()+place))
			}
		}
		m.ops.mov(g.table(fmt.Sprintf("%s%d", name, j), index), m.zmm[16+j])
		t := g.GP32()
		g.MOVL(operand.U32(mask), t)
		g.KMOVW(t, laneMasks[j])
	}
	permute := g.VPERMI2PS
	if m.t == solver.Float64 {
		permute = g.VPERMI2PD
	}
	g.Label("loop")
	for j := range 4 {
		m.ops.mov(operand.Mem{Base: src, Disp: 64 * j}, m.zmm[j])
	}
	for j := range 4 {
		a, b := m.zmm[4+2*j], m.zmm[5+2*j]
		m.ops.mov(m.zmm[16+j], a)
		m.ops.mov(m.zmm[16+j], b)
		permute(m.zmm[1], m.zmm[0], a)
		permute(m.zmm[3], m.zmm[2], b)
		m.ops.mov(b, laneMasks[j], a)
		m.ops.mov(a, operand.Mem{Base: dst, Disp: 64 * j})
	}
	g.ADDQ(operand.U32(256), src)
	g.ADDQ(operand.U32(256), dst)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("loop"))
	g.VZEROUPPER()
	g.RET()
}
