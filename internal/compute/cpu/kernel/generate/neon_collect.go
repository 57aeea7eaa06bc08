package main

import (
	"fmt"
	"math"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/compute/cpu/neon"
)

// collect writes the function that adds group sums to the limbs of a Collector. The limbs are integers, of two lanes
// for a vector of two float64 values; a vector of float32 takes two of these.
func (m *arm64) collect() {
	var c kernel.Collector
	const collector, acc, n, scratch = "R0", "R1", "R2", "R3"
	m.function("collect", "collect", "collect", 25)
	m.Op("MOVD", "c+0(FP)", collector)
	m.Op("MOVD", "acc+8(FP)", acc)
	m.Op("MOVD", "n+16(FP)", n)
	scale, bias, bound, good := neon.Reg(20), neon.Reg(21), neon.Reg(22), neon.Reg(23)
	m.Op("ADD", fmt.Sprintf("$%d", unsafe.Offsetof(c.Scale)), collector, scratch)
	m.Spread(neon.Float64, scratch, scale)
	m.Op("ADD", fmt.Sprintf("$%d", unsafe.Offsetof(c.Bias)), collector, scratch)
	m.Spread(neon.Float64, scratch, bias)
	negative := neon.Reg(24)
	m.Constant(neon.Float64, math.Float64bits(math.Copysign(0, -1)), scratch, negative)
	m.Op("VEOR", negative.Bytes(), bias.Bytes(), bias.Bytes())
	m.Constant(neon.Float64, math.Float64bits(kernel.Bound), scratch, bound)
	m.Constant(neon.Float64, math.MaxUint64, scratch, good)
	unit, inverse := [3]neon.Reg{1: 25, 2: 26}, [3]neon.Reg{1: 27, 2: 28}
	for i := 1; i < 3; i++ {
		m.Constant(neon.Float64, math.Float64bits(power(48*i)), scratch, unit[i])
		m.Constant(neon.Float64, math.Float64bits(power(-48*i)), scratch, inverse[i])
	}
	vectors := m.t.Lanes() / 2
	limb := func(v, i int) neon.Reg { return neon.Reg(3*v + i) }
	for v := range vectors {
		for i := range 3 {
			m.Zero(limb(v, i))
		}
	}
	m.Label("loop")
	values := neon.Reg(8)
	m.Op("FMOVQ.P", fmt.Sprintf("%d(%s)", neon.VectorBytes, acc), values.Quad())
	wide := []neon.Reg{values}
	if m.t == neon.Float32 {
		wide = []neon.Reg{9, 10}
		m.WidenLow(values, wide[0])
		m.WidenHigh(values, wide[1])
	}
	for v, from := range wide {
		x, q := neon.Reg(12+v), neon.Reg(14+v)
		m.Move(bias, x)
		m.MultiplyAdd(neon.Float64, scale, from, x)
		m.Greater(neon.Float64, x, bound, q) // x < bound; not so for NaN
		m.And(q, good, good)
		for i := 2; i >= 0; i-- {
			part := x
			if i > 0 {
				part = q
				m.Multiply(neon.Float64, inverse[i], x, q)
				m.Floor(q, q)
				m.MultiplySubtract(neon.Float64, unit[i], q, x)
			}
			m.ToInteger(part, part)
			m.AddIntegers(part, limb(v, i), limb(v, i))
		}
	}
	m.Op("SUBS", fmt.Sprintf("$%d", m.t.Lanes()), n)
	m.Op("BNE", "loop")
	m.Op("VMOV", good.Lane(0), scratch)
	m.Op("VMOV", good.Lane(1), n)
	m.Op("AND", scratch, n)
	m.Op("CBZ", n, "refused")
	for v := range vectors {
		for i := range 3 {
			at := int(unsafe.Offsetof(c.Limbs)+uintptr(i)*unsafe.Sizeof(c.Limbs[0])) + v*neon.VectorBytes
			m.Load(collector, at, values)
			m.AddIntegers(values, limb(v, i), values)
			m.Store(values, collector, at)
		}
	}
	m.Op("MOVD", "$1", scratch)
	m.Op("MOVB", scratch, "ret+24(FP)")
	m.Op("RET")
	m.Label("refused")
	m.Op("MOVB", "ZR", "ret+24(FP)")
	m.Op("RET")
}

// transpose writes pack or unpack: one of load and store orders four vectors by values, the other by vectors.
func (m *arm64) transpose(name, to, load, store string) {
	const dst, src, blocks = "R0", "R1", "R2"
	m.function(name, to, "transpose", 24)
	m.Op("MOVD", "dst+0(FP)", dst)
	m.Op("MOVD", "src+8(FP)", src)
	m.Op("MOVD", "blocks+16(FP)", blocks)
	m.Label("loop")
	list, bytes := neon.Reg(0).Values(4, m.t), 4*neon.VectorBytes
	m.Op(load, neon.Memory(src, bytes), list)
	m.Op(store, list, neon.Memory(dst, bytes))
	m.Op("SUBS", "$1", blocks)
	m.Op("BNE", "loop")
	m.Op("RET")
}
