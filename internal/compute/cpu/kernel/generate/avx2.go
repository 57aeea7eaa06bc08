package main

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/assembly"
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/compute/cpu/operator"
)

// avx2 writes for 16 registers of 32 bytes: three rows of a block are in 0-11, temporaries in 12-13, sums in 14, and in
// 15 h of the general operator, or the sum of the terms of a point. Other constants are in memory.
type avx2 struct {
	*generator
	acc     reg.VecPhysical
	quarter operand.Mem
	h       reg.VecPhysical // weights of the general operator
	q       operand.Mem
	sum     reg.VecPhysical // of terms
}

func newAVX2(g *generator) machine {
	return &avx2{generator: g, acc: g.V[14], h: g.V[15], sum: g.V[15]}
}

func (m *avx2) line(i int) blockRegs { return blockRegs(m.V[i%3*4 : i%3*4+4]) }

// spread declares a vector whose lanes all hold v.
func (m *avx2) spread(name string, v operand.Constant) operand.Mem {
	return m.constant(name, 32/m.Size, v)
}

// greater sets r = a > b for signed integers: all bits set for true.
func (m *avx2) greater(a reg.VecPhysical, b operand.Op, r reg.VecPhysical) {
	assembly.Of(m.Machine, m.VPCMPGTD, m.VPCMPGTQ)(b, a, r)
}

func (m *avx2) prologue(v variant, weights reg.Register) {
	switch v.operator {
	case kernel.General:
		m.VMOVUPS(operand.Mem{Base: weights}, m.h)
		m.q = operand.Mem{Base: weights, Disp: m.Bytes()}
	case kernel.Plain:
		m.quarter = m.spread("quarter", m.float(operator.Quarter))
	}
}

func (m *avx2) load(r reg.VecPhysical, p operand.Mem) { m.VMOVUPS(p, r) }

func (m *avx2) loadAcc(acc operand.Mem, restart reg.GPVirtual) {
	g, t := m.generator, m.V[12]
	keep := g.GP64()
	g.LEAQ(operand.Mem{Base: restart, Disp: -1}, keep) // all bits set, or none to restart
	g.VMOVQ(keep, t.AsX())
	g.VPBROADCASTQ(t.AsX(), t)
	g.VANDPS(acc, t, m.acc)
}

func (m *avx2) storeAcc(acc operand.Mem) { m.VMOVUPS(m.acc, acc) }

func (m *avx2) clearAcc() { m.VXORPS(m.acc, m.acc, m.acc) }

// magnitude returns a mask of all bits except the sign.
func (m *avx2) magnitude() operand.Mem {
	return m.spread("magnitude", m.integer(1<<(8*m.Size-1)-1))
}

func (m *avx2) ifTiny(sample operand.Mem, label operand.LabelRef) {
	g, t, u := m.generator, m.V[12], m.V[13]
	g.VMOVUPS(sample, t)
	g.VANDPS(m.magnitude(), t, t)
	g.VMOVUPS(m.spread("tiny", m.float(power(m.tiny()))), u)
	m.greater(u, t, u)
	m.greater(t, m.spread("zero", m.float(0)), t)
	g.VPTEST(t, u)
	g.JNE(label)
}

// quarterOf sets n = x * quarter. If tiny is set, n must be x.
func (m *avx2) quarterOf(x, n reg.VecPhysical, tiny bool) {
	if tiny {
		m.scaleTiny(x)
	} else {
		m.Mul(m.quarter, x, n)
	}
}

// scaleTiny sets x = x * quarter by operations that are fast for every x, as for AVX-512.
func (m *avx2) scaleTiny(x reg.VecPhysical) {
	g, t, u := m.generator, m.V[12], m.V[13]
	sign := m.spread("sign", m.integer(m.bits(math.Copysign(0, -1))))
	g.VANDPS(sign, x, t)
	g.VORPS(m.spread("small", m.float(4*m.smallest())), t, u)
	m.Add(x, u, u)
	m.Mul(m.quarter, u, u)
	g.VORPS(m.spread("smallest", m.float(m.smallest())), t, t)
	assembly.Of(g.Machine, g.VPSUBD, g.VPSUBQ)(t, u, u)
	g.VANDPS(sign, x, t)
	g.VORPS(t, u, u)
	g.VANDPS(m.magnitude(), x, t)
	m.atLeast(math.Ilogb(4*m.smallest()), t)
	g.VANDPS(t, x, x)
	m.Mul(m.quarter, x, x)
	g.VANDNPS(u, t, u)
	g.VORPS(u, x, x)
}

// atLeast sets r, which is not negative, to all bits where it is 2^n or more.
func (m *avx2) atLeast(n int, r reg.VecPhysical) {
	m.greater(r, m.spread(fmt.Sprintf("below%d_", -n), m.integer(m.bits(power(n))-1)), r)
}

// subtractTiny sets n = n - c, or 0 where both are so small that the square of the difference is far below the last
// place of any sum but the difference may be denormal.
func (m *avx2) subtractTiny(n, c reg.VecPhysical) {
	t, u := m.V[12], m.V[13]
	m.VORPS(n, c, t)
	m.VANDPS(m.magnitude(), t, t)
	m.atLeast(m.tiny(), t)
	m.VANDPS(t, n, n)
	m.VANDPS(t, c, u)
	m.Sub(u, n, n)
}

func (m *avx2) row(n, c, s blockRegs, mem rowMem, v variant) {
	g, t, w := m.generator, m.V[12], m.V[13]
	u := operator.New(m.Machine, m.h, nil)
	u.Quarter = m.quarterOf
	u.Blend = func(s, n reg.VecPhysical) { m.FMA132(m.q, s, n) } // q is in memory
	if !v.termed() {
		for j := range n {
			u.Neighbours(s[j], n[j], n[j])
		}
	}
	// combine takes the sum of west and east of vector j.
	combine := func(sum reg.VecPhysical, j int) { u.Sum(sum, n[j], n[j]) }
	if v.operator == kernel.General {
		combine = func(sum reg.VecPhysical, j int) { u.General(sum, n[j], mem.values[0][j]) }
	}
	// West and east neighbours of vector j: vectors j-1 and j+1, at the ends shifted by a lane.
	g.VPERM2F128(operand.U8(0x03), mem.carry, c[3], t) // upper half of carry, lower half of c[3]
	g.VPALIGNR(operand.U8(16-m.Size), t, c[3], t)
	g.VMOVUPS(c[3], mem.carry)
	g.VPERM2F128(operand.U8(0x21), mem.east, c[0], w) // upper half of c[0], lower half of east
	g.VPALIGNR(operand.U8(m.Size), c[0], w, w)
	if v.termed() {
		m.terms(n, c, s, t, w, mem, v)
	} else {
		u.Neighbours(c[1], t, t)
		combine(t, 0)
		u.Neighbours(w, c[2], w)
		combine(w, 3)
		u.Neighbours(c[2], c[0], t)
		combine(t, 1)
		u.Neighbours(c[3], c[1], w)
		combine(w, 2)
	}
	for j := range n {
		if v.operator == kernel.Plain {
			u.Average(n[j], n[j], v.tiny)
		}
		if v.swept {
			m.expand(mem.swept[j], t)
			g.VBLENDVPS(t, n[j], c[j], n[j])
		}
		if v.stream {
			g.VMOVNTPS(n[j], mem.dst[j])
		} else {
			g.VMOVUPS(n[j], mem.dst[j])
		}
	}
	if v.bare {
		return
	}
	for j := range n {
		if v.tiny {
			m.subtractTiny(n[j], c[j])
		} else {
			m.Sub(c[j], n[j], n[j])
		}
	}
	// Pairs of squares, from the smallest normal number on: no result is denormal.
	start := m.spread("smallest", m.float(m.smallest()))
	m.FMA213(start, n[0], n[0])
	m.FMA213(start, n[2], n[2])
	m.FMA231(n[1], n[1], n[0])
	m.FMA231(n[3], n[3], n[2])
	m.Add(n[2], n[0], n[0])
	m.Add(n[0], m.acc, m.acc)
}

// terms leaves the new values by an operator of terms in n. west and east are the neighbours of the first and of the
// last vector.
func (m *avx2) terms(n, c, s blockRegs, west, east reg.VecPhysical, mem rowMem, v variant) {
	u := operator.Terms{
		Load: func(b operand.Op) reg.VecPhysical {
			m.VMOVUPS(b, m.sum)
			return m.sum
		},
		Fma: func(weight operand.Op, value, sum reg.VecPhysical) reg.VecPhysical {
			m.FMA231(weight, value, sum)
			return sum
		},
		Into: func(weight operand.Op, value, sum reg.VecPhysical) reg.VecPhysical {
			m.FMA132(weight, sum, value)
			return value
		},
	}
	west4, east4 := [4]reg.VecPhysical{west, c[0], c[1], c[2]}, [4]reg.VecPhysical{c[1], c[2], c[3], east}
	for j := range n {
		u.Update(mem.vector(j), west4[j], east4[j], n[j], s[j])
	}
}

// expand sets each lane of t to all bits where its bit of the mask is set, and clears it elsewhere.
func (m *avx2) expand(mask operand.Mem, t reg.VecPhysical) {
	var bit []operand.Constant
	for lane := range m.Lanes() {
		bit = append(bit, m.integer(1<<lane))
	}
	lanes := m.table("lanes", bit)
	m.VPBROADCASTB(mask, t)
	m.VPAND(lanes, t, t)
	assembly.Of(m.Machine, m.VPCMPEQD, m.VPCMPEQQ)(lanes, t, t)
}

// collect writes the function that adds group sums to the limbs of a Collector.
func (m *avx2) collect() {
	var c kernel.Collector
	g := m.generator
	g.Begin("collect", "collect", collectSignature)
	p, acc, n := g.param("c"), g.param("acc"), g.param("n")
	limb := m.V[0:3]
	bias, good, scale, less := m.V[3], m.V[4], m.V[5], m.V[6]
	g.VBROADCASTSD(g.constant("bias", 1, operand.F64(1<<52)), bias)
	g.VBROADCASTSD(field(p, unsafe.Offsetof(c.Scale)), scale)
	g.VBROADCASTSD(field(p, unsafe.Offsetof(c.Bias)), less)
	for _, r := range limb {
		g.VMOVAPD(bias, r)
	}
	g.VPCMPEQQ(good, good, good)
	bound := g.constant("bound", 4, operand.F64(kernel.Bound))
	var unit, inverse [3]operand.Mem
	for i := 1; i < 3; i++ {
		unit[i] = g.constant(fmt.Sprintf("unit%d", i), 4, operand.F64(power(48*i)))
		inverse[i] = g.constant(fmt.Sprintf("inverse%d", i), 4, operand.F64(power(-48*i)))
	}
	g.Label("loop")
	x, q, t := m.V[7], m.V[9], m.V[10]
	assembly.Of(g.Machine, g.VCVTPS2PD, g.VMOVUPD)(operand.Mem{Base: acc}, x)
	g.VFMSUB213PD(less, scale, x)         // x*scale - less
	g.VCMPPD(operand.U8(17), bound, x, t) // x < bound; not so for NaN
	g.VANDPD(t, good, good)
	for i := 2; i > 0; i-- {
		g.VMULPD(inverse[i], x, q)
		g.VROUNDPD(operand.U8(1), q, q) // down
		g.VADDPD(q, limb[i], limb[i])
		g.VFNMADD231PD(unit[i], q, x)
	}
	g.VROUNDPD(operand.U8(1), x, q)
	g.VADDPD(q, limb[0], limb[0])
	g.ADDQ(operand.Imm(uint64(4*m.Size)), acc)
	g.SUBQ(operand.Imm(4), n)
	g.JNZ(operand.LabelRef("loop"))
	g.VMOVMSKPD(good, n.As32())
	g.CMPL(n.As32(), operand.U8(0xf))
	g.JNE(operand.LabelRef("refused"))
	for i := range limb {
		// Of two floats with one exponent the bits differ by the difference in units of the last place.
		to := field(p, unsafe.Offsetof(c.Limbs)+uintptr(i)*unsafe.Sizeof(c.Limbs[0]))
		g.VPSUBQ(bias, limb[i], limb[i])
		g.VPADDQ(to, limb[i], limb[i])
		g.VMOVDQU(limb[i], to)
	}
	g.verdict()
}

func (m *avx2) transposes() {}
