package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/assembly"
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/compute/cpu/operator"
)

// avx512 writes for 32 registers of 64 bytes: three rows of a block are in 0-11, temporaries in 12-15 and 24-27, sums
// and constants between.
type avx512 struct {
	*generator
	quarter reg.VecPhysical
	acc     reg.VecPhysical
	start   reg.VecPhysical // smallest normal number
	ones    reg.VecPhysical // all bits set
	one     reg.VecPhysical // 1
	limit   reg.VecPhysical // for ifTiny
	h, q    reg.VecPhysical // weights of the general operator
}

func newAVX512(g *generator) machine {
	return &avx512{generator: g, acc: g.V[16], quarter: g.V[17], start: g.V[19], ones: g.V[20], limit: g.V[21],
		one: g.V[29], h: g.V[17], q: g.V[18]}
}

func (m *avx512) line(i int) blockRegs { return blockRegs(m.V[i%3*4 : i%3*4+4]) }

// spread declares a constant of the type and loads it into all lanes.
func (m *avx512) spread(name string, v operand.Constant, r reg.VecPhysical) {
	m.Broadcast(m.constant(name, 1, v), r)
}

func (m *avx512) prologue(v variant, weights reg.Register) {
	g := m.generator
	m.spread("one", m.integer(m.bits(1)), m.one)
	if v.operator != kernel.Plain {
		if v.operator == kernel.General {
			m.Mov(operand.Mem{Base: weights}, m.h)
			m.Mov(operand.Mem{Base: weights, Disp: m.Bytes()}, m.q)
		}
		m.spread("smallest", m.float(m.smallest()), m.start)
		return
	}
	m.spread("quarter", m.float(operator.Quarter), m.quarter)
	m.spread("smallest", m.float(m.smallest()), m.start)
	// Twice the bits drops the sign; less one makes 0 large.
	double := func(v float64) operand.Constant { return m.integer(2*m.bits(v) - 1) }
	m.spread("tiny", double(power(m.tiny())), m.limit)
	g.VPTERNLOGD(operand.U8(0xff), m.ones, m.ones, m.ones)
	m.spread("sign", m.integer(m.bits(math.Copysign(0, -1))), m.V[22])
	m.spread("small", m.float(4*m.smallest()), m.V[23])
	m.spread("doubleSmall", double(4*m.smallest()), m.V[28])
}

// laneMasks hold the masks of the vectors of a block.
var laneMasks = [4]reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4}

func (m *avx512) load(r reg.VecPhysical, p operand.Mem) { m.Mov(p, r) }

func (m *avx512) loadAcc(acc operand.Mem, restart reg.GPVirtual) {
	g := m.generator
	keep := g.GP64()
	g.LEAQ(operand.Mem{Base: restart, Disp: -1}, keep) // all bits set, or none to restart
	g.KMOVW(keep.As32(), reg.K5)
	assembly.Of(g.Machine, g.VMOVUPS_Z, g.VMOVUPD_Z)(acc, reg.K5, m.acc)
}

func (m *avx512) storeAcc(acc operand.Mem) { m.Mov(m.acc, acc) }

func (m *avx512) clearAcc() { m.VPXORD(m.acc, m.acc, m.acc) }

func (m *avx512) ifTiny(sample operand.Mem, label operand.LabelRef) {
	m.Mov(sample, m.V[12])
	m.below(m.V[12], m.limit, reg.K6)
	m.KORTESTW(reg.K6, reg.K6)
	m.JNE(label)
}

// below sets k where r is not 0 and small: where twice its bits, less one, are below limit. It overwrites r.
func (m *avx512) below(r, limit reg.VecPhysical, k reg.OpmaskPhysical) {
	add := assembly.Of(m.Machine, m.VPADDD, m.VPADDQ)
	add(r, r, r)
	add(m.ones, r, r)
	assembly.Of(m.Machine, m.VPCMPUD, m.VPCMPUQ)(operand.U8(1), limit, r, k)
}

// quarterOf sets n = x * quarter.
func (m *avx512) quarterOf(x, n reg.VecPhysical, tiny bool) {
	if tiny {
		m.scaleTiny(x, n)
	} else {
		m.Mul(m.quarter, x, n)
	}
}

// scaleTiny sets n = x * quarter by operations that are fast for every x. The product may be denormal where |x| <
// 4*smallest. There x is added to 4*smallest of its sign, which rounds x to a multiple of 4 times the smallest denormal
// number, so that a quarter of the sum is exact and normal. The distance of that quarter from smallest is an integer in
// units of the smallest denormal number, and this integer is the bit pattern of the result without its sign.
func (m *avx512) scaleTiny(x, n reg.VecPhysical) {
	t, u, rest := m.V[24], m.V[25], reg.K7
	m.Mov(x, t)
	m.below(t, m.V[28], reg.K6)
	m.KNOTW(reg.K6, rest)
	m.VPANDD(m.V[22], x, t) // sign
	m.VPORD(m.V[23], t, u)
	m.Add(x, u, u)
	m.Mul(m.quarter, u, u)
	m.VPORD(m.start, t, n)
	assembly.Of(m.Machine, m.VPSUBD, m.VPSUBQ)(n, u, u)
	m.VPORD(t, u, n)
	m.Mul(m.quarter, x, rest, n)
}

// subtractTiny sets d = n - c, or 0 where both are so small that the square of d is far below the last place of any sum
// but d may be denormal.
func (m *avx512) subtractTiny(n, c, d reg.VecPhysical) {
	t, rest := m.V[24], reg.K7
	m.VPORD(n, c, t)
	m.below(t, m.limit, reg.K6)
	m.KNOTW(reg.K6, rest)
	assembly.Of(m.Machine, m.VSUBPS_Z, m.VSUBPD_Z)(c, n, rest, d)
}

func (m *avx512) row(n, c, s blockRegs, mem rowMem, v variant) {
	store := m.Mov
	if v.stream {
		store = func(ops ...operand.Op) { m.VMOVNTPS(ops[0], ops[1]) }
	}
	t := m.V[12:16]
	// West and east neighbours of vector j: vectors j-1 and j+1, at the ends shifted by a lane.
	m.Mov(mem.east, t[3])
	m.Align(operand.U8(1), c[0], t[3], t[3])
	m.Align(operand.U8(m.Lanes()-1), mem.carry, c[3], t[0])
	m.Mov(c[3], mem.carry)
	if v.termed() {
		m.terms(n, c, s, t[0], t[3], mem, v, store)
		return
	}
	// Two units of an AMD core add, and two others multiply. Two sums and the differences below go to the latter, which
	// have less to do. 1*west + east is rounded as west + east.
	u := operator.New(m.Machine, m.h, m.q)
	u.Quarter = m.quarterOf
	one := u
	one.Add = func(ops ...operand.Op) { m.FMA213(ops[0], m.one, ops[1]) }
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
			m.Mov(c[j], n[j])
			m.Mul(m.quarter, t[j], laneMasks[j], n[j])
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
			m.Sub(c[j], n[j], t[j])
		// As n - c: the product is exact or denormal, and then only one of n and c matters for the sums.
		case v.swept:
			assembly.Of(m.Machine, m.VFMSUB213PS_Z, m.VFMSUB213PD_Z)(c[j], m.quarter, laneMasks[j], t[j])
		default:
			m.FMSUB213(c[j], m.quarter, t[j])
		}
	}
	m.addSquares(t)
}

// addSquares adds the squares of t to the sums. Pairs of squares begin with the smallest normal number: no result is
// denormal.
func (m *avx512) addSquares(t []reg.VecPhysical) {
	m.FMA213(m.start, t[0], t[0])
	m.FMA213(m.start, t[2], t[2])
	m.FMA231(t[1], t[1], t[0])
	m.FMA231(t[3], t[3], t[2])
	m.Add(t[2], t[0], t[0])
	m.Add(t[0], m.acc, m.acc)
}

// terms is the rest of row for an operator of terms. west and east are the neighbours of the first and of the last
// vector.
func (m *avx512) terms(n, c, s blockRegs, west, east reg.VecPhysical, mem rowMem, v variant,
	store func(...operand.Op)) {
	if v.swept {
		m.loadMasks(mem.swept)
	}
	fma := func(weight operand.Op, value, sum reg.VecPhysical) reg.VecPhysical {
		m.FMA231(weight, value, sum)
		return sum
	}
	sums := m.V[24:28]
	west4, east4 := [4]reg.VecPhysical{west, c[0], c[1], c[2]}, [4]reg.VecPhysical{c[1], c[2], c[3], east}
	for j := range n {
		u := operator.Terms{Fma: fma, Into: fma}
		u.Load = func(b operand.Op) reg.VecPhysical {
			m.Mov(b, sums[j])
			return sums[j]
		}
		u.Update(mem.vector(j), west4[j], east4[j], n[j], s[j])
		if v.swept {
			m.blend(c[j], sums[j], laneMasks[j])
		}
		store(sums[j], mem.dst[j])
	}
	if v.bare {
		return
	}
	for j := range n {
		m.Sub(c[j], sums[j], sums[j])
	}
	m.addSquares(sums)
}

// loadMasks sets the masks of the vectors of a block.
func (m *avx512) loadMasks(swept blockMem) {
	for j, k := range laneMasks {
		assembly.Of(m.Machine, m.KMOVW, m.KMOVB)(swept[j], k)
	}
}

// blend sets n to c where the mask is clear.
func (m *avx512) blend(c, n reg.VecPhysical, k reg.OpmaskPhysical) {
	assembly.Of(m.Machine, m.VBLENDMPS, m.VBLENDMPD)(n, c, k, n)
}
