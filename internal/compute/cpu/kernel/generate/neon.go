package main

import (
	"fmt"
	"math"
	"unsafe"

	"jacobi/internal/compute/cpu/declare"
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/internal/compute/cpu/neon"
	"jacobi/internal/compute/cpu/operator"
	"jacobi/solver"
)

// General registers of the functions for arm64. R16 to R18 and those from R26 on belong to the assembler, the system
// and the runtime.
const (
	regSpan    = "R0"
	regOff     = "R1"
	regAcc     = "R2"
	regCarry   = "R3"
	regBlocks  = "R4"
	regRows    = "R5"
	regSwept   = "R6" // SweptOff
	regAt      = "R7" // the current row
	regBelow   = "R8"
	regDst     = "R9"
	regScratch = "R10"
	regEnd     = "R11" // of the rows of the current groups
	regGroups  = "R12" // address of their sums
	regTerms   = "R13" // the weights of a block
)

// arm64 writes for 32 registers of 16 bytes: three rows of a block are in 0-11, temporaries in 12-19, sums, constants
// and masks in the others. There is no body for tiny values, which serves speed alone.
type arm64 struct {
	*neon.Writer
	t            neon.Type
	acc, keep    neon.Reg
	quarter      neon.Reg // of the plain average
	h, q         neon.Reg // of the general operator
	start        neon.Reg // smallest normal number
	lanes, masks neon.Reg // bits of the lanes; masks of the first of four vectors
	declared     declare.Table
}

// vectors are four consecutive registers.
type vectors [4]neon.Reg

func from(r neon.Reg) vectors { return vectors{r, r + 1, r + 2, r + 3} }

// writeARM64 writes the functions for arm64 to a file.
func writeARM64(name string) error {
	var tables []declare.Table
	w := neon.New(command())
	for _, t := range []neon.Type{neon.Float32, neon.Float64} {
		m := &arm64{Writer: w, t: t, acc: 20, keep: 21, quarter: 22, h: 22, q: 23, start: 25, lanes: 26,
			masks: 27}
		m.declared = table(m.name(""), t.Lanes())
		for _, s := range sweeps {
			if !s.stream {
				m.sweep(s.name, s.field, s.variant)
			}
		}
		m.collect()
		m.transpose("pack", "Pack", "VLD4.P", "VST1.P")
		m.transpose("unpack", "Unpack", "VLD1.P", "VST4.P")
		tables = append(tables, m.declared)
	}
	if err := w.Save(name); err != nil {
		return err
	}
	return declare.Write(name, command(), "kernel", tables...)
}

func (m *arm64) name(of string) string { return fmt.Sprintf("%sNEONF%d", of, 8*m.t) }

// function begins a function with the signature of a declaration, whose parameters and results take the given number of
// bytes. It is a field of kernel.Kernel.
func (m *arm64) function(name, field, declaration string, bytes int) {
	f := add(&m.declared, name, m.name(""), field, declaration)
	m.Function(f.Name, f.Signature, bytes)
}

// field loads a field of the span.
func (m *arm64) field(offset uintptr, to string) {
	m.Op("MOVD", neon.Memory(regSpan, int(offset)), to)
}

// rowAt loads the pointer to a row from the span, and sets to to the row's block.
func (m *arm64) rowAt(offset uintptr, off, to string) {
	m.field(offset, to)
	m.Op("ADD", off, to)
}

// load loads the vectors of a block.
func (m *arm64) load(base string, v vectors) {
	m.LoadPair(base, 0, v[0], v[1])
	m.LoadPair(base, 2*neon.VectorBytes, v[2], v[3])
}

// store stores the vectors of a block.
func (m *arm64) store(v vectors, base string) {
	m.StorePair(v[0], v[1], base, 0)
	m.StorePair(v[2], v[3], base, 2*neon.VectorBytes)
}

// sweep writes Sweep, Edge or a masked function, in the order of generator.sweep.
func (m *arm64) sweep(name, to string, v variant) {
	var span kernel.Span
	m.function(name, to, "sweep", 8)
	m.Op("MOVD", "s+0(FP)", regSpan)
	m.field(unsafe.Offsetof(span.Off), regOff)
	m.field(unsafe.Offsetof(span.Carry), regCarry)
	m.field(unsafe.Offsetof(span.Blocks), regBlocks)
	m.field(unsafe.Offsetof(span.Rows), regRows)
	if v.swept {
		m.field(unsafe.Offsetof(span.SweptOff), regSwept)
	}
	if !v.bare {
		m.field(unsafe.Offsetof(span.AccOff), regScratch)
		m.rowAt(unsafe.Offsetof(span.Acc), regScratch, regAcc)
		m.field(unsafe.Offsetof(span.Restart), regScratch)
		m.Op("SUB", "$1", regScratch) // all bits set, or none to restart
		m.Op("VDUP", regScratch, m.keep.Of(neon.Float64))
	}
	m.constants(v)

	m.Label("block")
	if !v.bare {
		m.Load(regAcc, 0, m.acc)
		m.And(m.keep, m.acc, m.acc)
		m.field(unsafe.Offsetof(span.Break), regEnd)
		m.Op("MOVD", regAcc, regGroups)
	}
	m.rows(v)
	m.Label("rows_done")
	if !v.bare {
		m.Store(m.acc, regGroups, 0)
		m.Op("ADD", fmt.Sprintf("$%d", neon.VectorBytes), regAcc)
	}
	m.Op("ADD", fmt.Sprintf("$%d", 4*neon.VectorBytes), regOff)
	if v.swept {
		m.Op("ADD", fmt.Sprintf("$%d", 4*kernel.MaskBytes(m.t.Lanes())), regSwept)
	}
	m.Op("SUBS", "$1", regBlocks)
	m.Op("BNE", "block")
	m.Op("RET")
	if !v.bare {
		m.breaks()
	}
}

// breaks writes where rows jump to at the end of their groups, as generator.breaks does.
func (m *arm64) breaks() {
	var span kernel.Span
	for i := 1; i < kernel.Rows; i++ {
		m.Label(fmt.Sprintf("end_%d", i))
		m.Op("CMP", fmt.Sprintf("$%d", i), regRows)
		m.Op("BEQ", "rows_done")
		m.Store(m.acc, regGroups, 0)
		m.Zero(m.acc)
		m.field(unsafe.Offsetof(span.AccNext), regScratch)
		m.Op("ADD", regScratch, regGroups)
		m.Op("MOVD", regRows, regEnd)
		m.Op("B", fmt.Sprintf("row_%d", i))
	}
}

// bits returns the bits of a value of the type.
func (m *arm64) bits(v float64) uint64 {
	if m.t == neon.Float32 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// constants loads what all blocks need.
func (m *arm64) constants(v variant) {
	var span kernel.Span
	switch v.operator {
	case kernel.General:
		m.field(unsafe.Offsetof(span.Weights), regScratch)
		m.LoadPair(regScratch, 0, m.h, m.q)
	case kernel.Plain:
		m.Constant(m.t, m.bits(operator.Quarter), regScratch, m.quarter)
	}
	m.Constant(m.t, m.bits(smallest(int(m.t))), regScratch, m.start)
	if v.masked {
		m.field(unsafe.Offsetof(span.Masks), regScratch)
		m.load(regScratch, from(m.masks))
	}
	if !v.swept {
		return
	}
	bits := [2]uint64{1 | 2<<32, 4 | 8<<32}
	if m.t == neon.Float64 {
		bits = [2]uint64{1, 2}
	}
	for i, b := range bits {
		m.Op("MOVD", fmt.Sprintf("$0x%x", b), regScratch)
		m.Op("VMOV", regScratch, m.lanes.Lane(i))
	}
}

// rows writes the rows of a block one after another, with a jump after each but the last if it ends its groups.
func (m *arm64) rows(v variant) {
	var span kernel.Span
	line := func(i int) vectors { return from(neon.Reg(i % 3 * 4)) }
	src := func(i int) uintptr { return unsafe.Offsetof(span.Src) + uintptr(8*i) }
	m.rowAt(src(0), regOff, regAt)
	m.load(regAt, line(0))
	m.rowAt(src(1), regOff, regAt)
	m.load(regAt, line(1))
	for i := range kernel.Rows {
		if i > 0 && !v.bare {
			m.Label(fmt.Sprintf("row_%d", i))
		} else {
			m.Comment(fmt.Sprintf("row %d", i))
		}
		m.rowAt(src(i+2), regOff, regBelow)
		m.load(regBelow, line(i+2))
		m.row(i, line(i), line(i+1), line(i+2), v)
		if i+1 < kernel.Rows {
			m.Op("MOVD", regBelow, regAt)
			count, end := regEnd, fmt.Sprintf("end_%d", i+1)
			if v.bare {
				count, end = regRows, "rows_done"
			}
			m.Op("CMP", fmt.Sprintf("$%d", i+1), count)
			m.Op("BEQ", end)
		}
	}
}

// row sweeps block c of row i, between n and s. It stores the new values, leaves vector 3 in Carry, adds the squares of
// the update to the sums and overwrites n.
func (m *arm64) row(i int, n, c, s vectors, v variant) {
	var span kernel.Span
	u := m.operator()
	// West and east neighbours of vector j: vectors j-1 and j+1, at the ends shifted by a lane.
	t, carry, east := from(12), neon.Reg(16), neon.Reg(17)
	m.Load(regCarry, i*neon.VectorBytes, carry)
	m.Load(regAt, 4*neon.VectorBytes, east)
	m.Store(c[3], regCarry, i*neon.VectorBytes)
	m.Extract(neon.VectorBytes-int(m.t), c[3], carry, t[0])
	m.Extract(int(m.t), east, c[0], t[3])
	if !v.termed() {
		u.Neighbours(c[1], t[0], t[0])
		u.Neighbours(c[2], c[0], t[1])
		u.Neighbours(c[3], c[1], t[2])
		u.Neighbours(t[3], c[2], t[3])
		for j := range n {
			u.Neighbours(s[j], n[j], n[j])
		}
	}
	m.rowAt(unsafe.Offsetof(span.Dst)+uintptr(8*i), regOff, regDst)
	value := t
	if v.operator != kernel.Plain {
		m.rowAt(unsafe.Offsetof(span.Sources)+uintptr(8*i), regOff, regScratch)
	}
	switch v.operator {
	case kernel.Plain:
		for j := range n {
			u.Sum(n[j], t[j], t[j])
		}
		for j := range n {
			u.Average(t[j], t[j], false)
		}
	case kernel.General:
		source := from(16)
		m.load(regScratch, source)
		for j := range n {
			value[j] = u.General(t[j], n[j], source[j])
		}
	default:
		m.field(unsafe.Offsetof(span.Terms)+uintptr(8*i), regTerms)
		for range v.operator.Terms() {
			m.Op("ADD", regOff, regTerms)
		}
		value = m.terms(v.operator, vectors{t[0], c[0], c[1], c[2]}, vectors{c[1], c[2], c[3], t[3]}, n, s)
	}
	if v.swept {
		m.loadMasks(i)
	}
	if v.masked || v.swept {
		for j, mask := range from(m.masks) {
			m.Keep(mask, c[j], value[j])
		}
	}
	m.store(value, regDst)
	if !v.bare {
		m.addSquares(n, c, value)
	}
}

// terms returns the new values by an operator of terms, with b at regScratch and the weights at regTerms.
func (m *arm64) terms(o kernel.Operator, west, east, n, s vectors) vectors {
	sums, weights := from(16), vectors{13, 14, 22, 23}
	fma := func(k int, value, sum vectors) vectors {
		at := 4 * (k - int(solver.West)) * neon.VectorBytes
		m.LoadPair(regTerms, at, weights[0], weights[1])
		m.LoadPair(regTerms, at+2*neon.VectorBytes, weights[2], weights[3])
		for j := range sum {
			m.MultiplyAdd(m.t, weights[j], value[j], sum[j])
		}
		return sum
	}
	u := operator.Terms[int, vectors]{Fma: fma, Into: fma, Load: func(int) vectors {
		m.load(regScratch, sums)
		return sums
	}}
	places := make([]int, solver.West+solver.Value(o.Terms()))
	for k := range places {
		places[k] = k
	}
	return u.Update(o, places, west, east, n, s)
}

func (m *arm64) operator() operator.Operator[neon.Reg, neon.Reg] {
	return operator.Operator[neon.Reg, neon.Reg]{
		Add:      func(a, b, to neon.Reg) { m.Add(m.t, a, b, to) },
		Subtract: func(a, b, to neon.Reg) { m.Subtract(m.t, a, b, to) },
		Quarter:  func(x, to neon.Reg, _ bool) { m.Multiply(m.t, m.quarter, x, to) },
		Blend: func(s, n neon.Reg) neon.Reg {
			m.MultiplyAdd(m.t, m.q, n, s)
			return s
		},
		Scale: func(b, n neon.Reg) neon.Reg {
			m.MultiplyAdd(m.t, m.h, n, b)
			return b
		},
	}
}

// loadMasks sets each lane of the masks of row i to all bits where its bit is set, and clears it elsewhere.
func (m *arm64) loadMasks(i int) {
	var span kernel.Span
	m.rowAt(unsafe.Offsetof(span.Swept)+uintptr(8*i), regSwept, regScratch)
	m.Op("VLD4R", neon.Memory(regScratch, 0), m.masks.List(4, "B16"))
	for _, mask := range from(m.masks) {
		m.Test(m.t, m.lanes, mask, mask)
	}
}

// addSquares adds the squares of value - c to the sums and overwrites n and value.
func (m *arm64) addSquares(n, c, value vectors) {
	for j := range n {
		m.Subtract(m.t, c[j], value[j], n[j])
	}
	// Pairs of squares, from the smallest normal number on: no result is denormal.
	a, b := value[0], value[2]
	m.Move(m.start, a)
	m.Move(m.start, b)
	m.MultiplyAdd(m.t, n[0], n[0], a)
	m.MultiplyAdd(m.t, n[2], n[2], b)
	m.MultiplyAdd(m.t, n[1], n[1], a)
	m.MultiplyAdd(m.t, n[3], n[3], b)
	m.Add(m.t, b, a, a)
	m.Add(m.t, a, m.acc, m.acc)
}
