package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"

	"jacobi/solver"
)

// transposes writes pack and unpack.
func (m *avx512) transposes() {
	m.transpose("pack", "Pack", func(j, lane int) (source, place int) {
		column := 4*lane + j
		return column / m.lanes(), column % m.lanes()
	})
	m.transpose("unpack", "Unpack", func(k, lane int) (source, place int) {
		column := k*m.lanes() + lane
		return column % 4, column / 4
	})
}

// transpose writes a function that permutes the values of each block: lane l of vector j comes from place p of vector
// v, (v, p) = from(j, l).
func (m *avx512) transpose(name, to string, from func(j, lane int) (source, place int)) {
	g := m.generator
	g.function(name, to, "transpose")
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
