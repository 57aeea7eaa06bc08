package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"

	"jacobi/internal/compute/cpu/assembly"
)

// transposes writes pack and unpack.
func (m *avx512) transposes() {
	m.transpose("pack", "Pack", func(j, lane int) (source, place int) {
		column := 4*lane + j
		return column / m.Lanes(), column % m.Lanes()
	})
	m.transpose("unpack", "Unpack", func(k, lane int) (source, place int) {
		column := k*m.Lanes() + lane
		return column % 4, column / 4
	})
}

// transpose writes a function that permutes the values of each block: lane l of vector j comes from place p of vector
// v, (v, p) = from(j, l).
func (m *avx512) transpose(name, to string, from func(j, lane int) (source, place int)) {
	g := m.generator
	g.Begin(name, to, transposeSignature)
	dst, src, blocks := g.param("dst"), g.param("src"), g.param("blocks")
	// Each vector blends a permutation of vectors 0 and 1 with one of vectors 2 and 3.
	for j := range 4 {
		var index []operand.Constant
		var mask uint32
		for lane := range m.Lanes() {
			source, place := from(j, lane)
			if source >= 2 {
				mask |= 1 << lane
			}
			index = append(index, m.integer(uint64(source%2*m.Lanes()+place)))
		}
		m.Mov(g.table(fmt.Sprintf("%s%d", name, j), index), m.V[16+j])
		t := g.GP32()
		g.MOVL(operand.U32(mask), t)
		g.KMOVW(t, laneMasks[j])
	}
	permute := assembly.Of(m.Machine, g.VPERMI2PS, g.VPERMI2PD)
	g.Label("loop")
	for j := range 4 {
		m.Mov(operand.Mem{Base: src, Disp: 64 * j}, m.V[j])
	}
	for j := range 4 {
		a, b := m.V[4+2*j], m.V[5+2*j]
		m.Mov(m.V[16+j], a)
		m.Mov(m.V[16+j], b)
		permute(m.V[1], m.V[0], a)
		permute(m.V[3], m.V[2], b)
		m.Mov(b, laneMasks[j], a)
		m.Mov(a, operand.Mem{Base: dst, Disp: 64 * j})
	}
	g.ADDQ(operand.U32(256), src)
	g.ADDQ(operand.U32(256), dst)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("loop"))
	g.VZEROUPPER()
	g.RET()
}
