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

// avx2 has 16 registers of 32 bytes: three rows of a block in 0-11, temporaries in 12-13, acc and a constant.
type avx2 struct {
	*generator
	t       solver.DType
	ymm     [16]reg.VecPhysical
	quarter reg.VecPhysical
	acc     reg.VecPhysical
	masks   blockMem
	add     func(...operand.Op)
	sub     func(...operand.Op)
	mul     func(...operand.Op)
	fma     func(...operand.Op)
}

func newAVX2(t solver.DType) machine {
	m := &avx2{t: t}
	m.ymm = [16]reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}
	m.acc, m.quarter = m.ymm[14], m.ymm[15]
	return m
}

func (m *avx2) use(g *generator) {
	m.generator = g
	if m.t == solver.Float32 {
		m.add, m.sub, m.mul, m.fma = g.VADDPS, g.VSUBPS, g.VMULPS, g.VFMADD231PS
	} else {
		m.add, m.sub, m.mul, m.fma = g.VADDPD, g.VSUBPD, g.VMULPD, g.VFMADD231PD
	}
}

func (m *avx2) suffix() string   { return fmt.Sprintf("AVX2F%d", 8*m.t.Size()) }
func (m *avx2) vectorBytes() int { return 32 }

func (m *avx2) line(i int) blockRegs { return blockRegs(m.ymm[i%3*4 : i%3*4+4]) }

func (m *avx2) prologue(v variant, masks blockMem) {
	g := m.generator
	if m.t == solver.Float32 {
		g.VBROADCASTSS(g.constant("quarter", 1, operand.F32(0.25)), m.quarter)
	} else {
		g.VBROADCASTSD(g.constant("quarter", 1, operand.F64(0.25)), m.quarter)
	}
	m.masks = masks
}

func (m *avx2) load(r reg.VecPhysical, p operand.Mem) { m.VMOVUPS(p, r) }

func (m *avx2) loadAcc(acc operand.Mem, restart reg.GPVirtual) {
	g, t := m.generator, m.ymm[12]
	keep := g.GP64()
	g.LEAQ(operand.Mem{Base: restart, Disp: -1}, keep) // all bits set, or none to restart
	g.VMOVQ(keep, t.AsX())
	g.VPBROADCASTQ(t.AsX(), t)
	g.VANDPS(acc, t, m.acc)
}

func (m *avx2) storeAcc(acc operand.Mem) { m.VMOVUPS(m.acc, acc) }

func (m *avx2) row(n, c, s blockRegs, carry, east operand.Mem, dst blockMem, v variant) {
	g, t, u := m.generator, m.ymm[12], m.ymm[13]
	for j := range n {
		m.add(s[j], n[j], n[j])
	}
	// West and east neighbours of vector j: vectors j-1 and j+1, at the ends shifted by a lane.
	size := m.t.Size()
	g.VPERM2F128(operand.U8(0x03), carry, c[3], t) // upper half of carry, lower half of c[3]
	g.VPALIGNR(operand.U8(16-size), t, c[3], t)
	g.VMOVUPS(c[3], carry)
	g.VPERM2F128(operand.U8(0x21), east, c[0], u) // upper half of c[0], lower half of east
	g.VPALIGNR(operand.U8(size), c[0], u, u)
	m.add(c[1], t, t)
	m.add(t, n[0], n[0])
	m.add(u, c[2], u)
	m.add(u, n[3], n[3])
	m.add(c[2], c[0], t)
	m.add(t, n[1], n[1])
	m.add(c[3], c[1], u)
	m.add(u, n[2], n[2])
	for j := range n {
		m.mul(m.quarter, n[j], n[j])
		if v.masked {
			g.VMOVUPS(m.masks[j], t)
			g.VBLENDVPS(t, n[j], c[j], n[j])
		}
		if v.stream {
			g.VMOVNTPS(n[j], dst[j])
		} else {
			g.VMOVUPS(n[j], dst[j])
		}
	}
	for j := range n {
		m.sub(c[j], n[j], n[j])
	}
	// ((d0*d0 + d1*d1) + (d2*d2 + d3*d3)), the second product of each pair fused.
	m.mul(n[0], n[0], t)
	m.mul(n[2], n[2], u)
	m.fma(n[1], n[1], t)
	m.fma(n[3], n[3], u)
	m.add(u, t, t)
	m.add(t, m.acc, m.acc)
}

// collect writes the function that adds group sums to the limbs of a Collector.
func (m *avx2) collect() {
	var c kernel.Collector
	g := m.generator
	g.function("collect", "collect")
	p, acc, n := g.param("c"), g.param("acc"), g.param("n")
	limb := m.ymm[0:3]
	bias := m.ymm[3]
	x, q, t := m.ymm[4], m.ymm[5], m.ymm[6]
	good, scale := m.ymm[7], m.ymm[8]
	g.VBROADCASTSD(g.constant("bias", 1, operand.F64(1<<52)), bias)
	g.VBROADCASTSD(field(p, unsafe.Offsetof(c.Scale)), scale)
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
	if m.t == solver.Float32 {
		g.VCVTPS2PD(operand.Mem{Base: acc}, x)
	} else {
		g.VMOVUPD(operand.Mem{Base: acc}, x)
	}
	g.VMULPD(scale, x, x)
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
	g.ADDQ(operand.Imm(uint64(4*m.t.Size())), acc)
	g.SUBQ(operand.Imm(4), n)
	g.JNZ(operand.LabelRef("loop"))
	ok, err := g.ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
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
	g.MOVB(operand.U8(1), ok.Addr)
	g.VZEROUPPER()
	g.RET()
	g.Label("refused")
	g.MOVB(operand.U8(0), ok.Addr)
	g.VZEROUPPER()
	g.RET()
}

// power returns 2^n.
func power(n int) float64 { return math.Ldexp(1, n) }

func (m *avx2) transposes() {}
