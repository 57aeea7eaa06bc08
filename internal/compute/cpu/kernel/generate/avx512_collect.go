package main

import (
	"fmt"
	"unsafe"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/assembly"
	"jacobi/internal/compute/cpu/kernel"
)

// collect writes the function that adds group sums to the limbs of a Collector. Adding to a biased limb toward minus
// infinity truncates a term to a multiple of the limb's last place.
func (m *avx512) collect() {
	var c kernel.Collector
	g := m.generator
	g.Begin("collect", "collect", collectSignature)
	p, acc, n := g.param("c"), g.param("acc"), g.param("n")
	scale, less, bound := m.V[6], m.V[7], m.V[8]
	g.VBROADCASTSD(field(p, unsafe.Offsetof(c.Scale)), scale)
	g.VBROADCASTSD(field(p, unsafe.Offsetof(c.Bias)), less)
	g.VBROADCASTSD(g.constant("bound", 1, operand.F64(kernel.Bound)), bound)
	var limb, bias [3]reg.VecPhysical
	for i := range limb {
		limb[i], bias[i] = m.V[i], m.V[3+i]
		g.VBROADCASTSD(g.constant(fmt.Sprintf("bias%d", i), 1, operand.F64(power(52+48*i))), bias[i])
		g.VMOVAPD(bias[i], limb[i])
	}
	g.KXNORW(reg.K1, reg.K1, reg.K1)
	g.Label("loop")
	x := m.V[9]
	assembly.Of(g.Machine, g.VCVTPS2PD, g.VMOVUPD)(operand.Mem{Base: acc}, x)
	sum, h := m.V[10], m.V[11]
	g.VFMSUB213PD(less, scale, x)                      // x*scale - less
	g.VCMPPD(operand.U8(17), bound, x, reg.K1, reg.K1) // x < bound; not so for NaN
	for i := 2; i > 0; i-- {
		g.VADDPD_RD_SAE(x, limb[i], sum)
		g.VSUBPD(limb[i], sum, h)
		g.VMOVAPD(sum, limb[i])
		g.VSUBPD(h, x, x)
	}
	g.VADDPD_RD_SAE(x, limb[0], limb[0])
	g.ADDQ(operand.Imm(uint64(8*m.Size)), acc)
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
