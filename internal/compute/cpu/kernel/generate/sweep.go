package main

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/assembly"
	"jacobi/internal/compute/cpu/kernel"
)

// The four vectors of a block, in registers or in memory.
type (
	blockRegs [4]reg.VecPhysical
	blockMem  [4]operand.Mem
)

// machine writes the parts that differ between instruction sets and types of value.
type machine interface {
	// line returns the registers of one of the three rows that are live at a time: above, current and below.
	line(i int) blockRegs
	// prologue loads constants. weights is the address of those of the general operator.
	prologue(v variant, weights reg.Register)
	load(r reg.VecPhysical, m operand.Mem)
	// loadAcc loads the sums of the groups from acc, or sets them to 0 if restart is 1.
	loadAcc(acc operand.Mem, restart reg.GPVirtual)
	storeAcc(acc operand.Mem)
	clearAcc()
	// ifTiny jumps to label if a value at sample is tiny and not 0.
	ifTiny(sample operand.Mem, label operand.LabelRef)
	// row sweeps block c of a row between n and s. It stores the new values, leaves vector 3 in carry, adds the squares
	// of the update to the sums and overwrites n.
	row(n, c, s blockRegs, m rowMem, v variant)
	collect()
	transposes()
}

// rowMem is the memory of a block of a row besides its values.
type rowMem struct {
	carry, east operand.Mem // vector 3 of the block before, and vector 0 of the next block
	dst         blockMem
	swept       blockMem   // masks with a bit for each lane
	values      []blockMem // of the operator
}

// variant is a kind of sweep: of an operator, with stores that bypass the caches, for tiny values, under masks, or
// bare, which is without sums for a norm.
type variant struct {
	operator                  kernel.Operator
	stream, tiny, swept, bare bool
}

// termed reports whether the operator is one of operator.Terms.
func (v variant) termed() bool { return v.operator > kernel.General }

// vector returns the memory of the values of the points of a vector of a block.
func (m rowMem) vector(j int) (values []operand.Op) {
	for _, v := range m.values {
		values = append(values, v[j])
	}
	return values
}

// tiny returns the exponent below which a value counts as tiny. The difference of two values is normal or 0 if at least
// one of them is not tiny. The biased exponents of tiny values are below a power of two, so the bitwise or of two
// values is tiny if and only if both are.
func (g *generator) tiny() int { return assembly.Of(g.Machine, 32-127, 64-1023) }

// generator writes functions for one machine.
type generator struct {
	*assembly.Machine
	machine
	tables map[string]operand.Mem // read-only data by name
}

// field returns a field of a Span that s points to.
func field(s reg.Register, offset uintptr) operand.Mem {
	return operand.Mem{Base: s, Disp: int(offset)}
}

func (g *generator) loadField(s reg.Register, offset uintptr) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(field(s, offset), r)
	return r
}

// param loads a parameter of 8 bytes.
func (g *generator) param(name string) reg.GPVirtual {
	r := g.GP64()
	c, err := g.Param(name).Resolve()
	if err != nil {
		panic(err) // the declarations have no such parameter
	}
	g.MOVQ(c.Addr, r)
	return r
}

// block returns the vectors of a block at base+index.
func (g *generator) block(base, index reg.Register) blockMem {
	var m blockMem
	for j := range m {
		m[j] = operand.Mem{Base: base, Index: index, Scale: 1, Disp: j * g.Bytes()}
	}
	return m
}

// sweep writes Sweep, Stream or a masked function. The function goes from block to block and, in a block, down
// the rows; the row above, the current row and the row below stay in registers. Three rows are unrolled, so that no
// registers need to be moved.
//
// Processors take over a hundred cycles for an operation with a denormal factor, and most also for one with a denormal
// result. A second body, three times as long, avoids such operations. A block takes it if a row in the middle of the
// span has a tiny value. The choice affects speed alone, since both bodies compute the same. Operators with
// values have the first body alone.
func (g *generator) sweep(name, to string, v variant) {
	var span kernel.Span
	g.Begin(name, to, sweepSignature)
	s := g.param("s")
	p := pass{variant: v, span: s}
	p.off = g.loadField(s, unsafe.Offsetof(span.Off))
	p.acc = g.loadField(s, unsafe.Offsetof(span.Acc))
	g.ADDQ(field(s, unsafe.Offsetof(span.AccOff)), p.acc)
	blocks := g.loadField(s, unsafe.Offsetof(span.Blocks))
	var weights reg.Register
	if v.operator == kernel.General {
		weights = g.loadField(s, unsafe.Offsetof(span.Weights))
	}
	g.prologue(v, weights)
	if v.swept {
		p.sweptOff = g.loadField(s, unsafe.Offsetof(span.SweptOff))
	}
	p.end, p.groups = g.GP64(), g.GP64()

	g.Label("block")
	if v.bare {
		g.endAt(p, unsafe.Offsetof(span.Rows))
	} else {
		g.loadAcc(operand.Mem{Base: p.acc}, g.loadField(s, unsafe.Offsetof(span.Restart)))
		g.endAt(p, unsafe.Offsetof(span.Break))
		g.MOVQ(p.acc, p.groups)
	}
	if v.operator == kernel.Plain {
		sample := g.loadField(s, unsafe.Offsetof(span.Rows))
		g.SHRQ(operand.U8(1), sample)
		g.MOVQ(operand.Mem{Base: s, Index: sample, Scale: 8, Disp: int(unsafe.Offsetof(span.Src)) + 8}, sample)
		g.ifTiny(operand.Mem{Base: sample, Index: p.off, Scale: 1}, operand.LabelRef("tiny"))
	}
	row := g.rows(p)
	g.Label("rows_done")
	if !v.bare {
		g.storeAcc(operand.Mem{Base: p.groups})
	}
	g.ADDQ(operand.U32(g.Bytes()), p.acc)
	g.ADDQ(operand.U32(4*g.Bytes()), p.off)
	if v.swept {
		g.ADDQ(operand.U8(4*kernel.MaskBytes(g.Lanes())), p.sweptOff)
	}
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("block"))
	g.VZEROUPPER()
	g.RET()
	g.breaks(p, row)
	if v.operator != kernel.Plain {
		return
	}
	g.Label("tiny")
	p.tiny = true
	g.breaks(p, g.rows(p))
}

// unrolled is the number of rows that are written one after another: each of the three lines of registers is that of
// the row above, of the current row and of the row below in turn.
const unrolled = 3

// pass holds the registers that the rows of a block need.
type pass struct {
	variant
	span, off, acc, sweptOff reg.GPVirtual
	end                      reg.GPVirtual // of the rows of the current groups, 8 for each row
	groups                   reg.GPVirtual // address of their sums
}

// label returns the name of a place among the rows.
func (p pass) label(name string, row int) string {
	if p.tiny {
		name = "tiny_" + name
	}
	return fmt.Sprintf("%s_%d", name, row)
}

// breaks writes where rows jump to at the end of their groups: to rows_done after the last row, and else to the next
// row after a change of groups. row has the number of the next row, times 8.
func (g *generator) breaks(p pass, row reg.Register) {
	if p.bare {
		return
	}
	var span kernel.Span
	for k := range unrolled {
		g.Label(p.label("end", k))
		g.endAt(p, unsafe.Offsetof(span.Rows))
		g.CMPQ(row, p.end)
		g.JE(operand.LabelRef("rows_done"))
		g.storeAcc(operand.Mem{Base: p.groups})
		g.clearAcc()
		g.ADDQ(field(p.span, unsafe.Offsetof(span.AccNext)), p.groups)
		g.JMP(operand.LabelRef(p.label("row", (k+1)%unrolled)))
	}
}

// endAt sets the end of the rows to the number in a field of the Span.
func (g *generator) endAt(p pass, number uintptr) {
	g.MOVQ(field(p.span, number), p.end)
	g.SHLQ(operand.U8(3), p.end)
}

// rows writes the rows of a block as a loop, with a jump after each if it ends its groups. It returns the register with
// the number of the next row, times 8: by that, lists of the Span and, with a scale, carries are found.
func (g *generator) rows(p pass) reg.Register {
	var span kernel.Span
	row, carry := g.GP64(), g.loadField(p.span, unsafe.Offsetof(span.Carry))
	g.XORQ(row, row)
	at := [unrolled]reg.GPVirtual{g.GP64(), g.GP64(), g.GP64()} // of the lines
	for i := range 2 {
		g.MOVQ(field(p.span, unsafe.Offsetof(span.Src)+uintptr(8*i)), at[i])
		for j, m := range g.block(at[i], p.off) {
			g.load(g.line(i)[j], m)
		}
	}
	for k := range unrolled {
		g.Label(p.label("row", k))
		below := at[(k+2)%unrolled]
		g.MOVQ(ofRow(p, row, unsafe.Offsetof(span.Src)+16), below)
		for j, m := range g.block(below, p.off) {
			g.load(g.line(k + 2)[j], m)
		}
		m := rowMem{
			carry: operand.Mem{Base: carry, Index: row, Scale: uint8(g.Bytes() / 8)},
			east:  operand.Mem{Base: at[(k+1)%unrolled], Index: p.off, Scale: 1, Disp: 4 * g.Bytes()},
			dst:   g.block(g.loadOfRow(p, row, unsafe.Offsetof(span.Dst)), p.off),
		}
		if p.swept {
			swept := g.loadOfRow(p, row, unsafe.Offsetof(span.Swept))
			for j := range m.swept {
				m.swept[j] = operand.Mem{Base: swept, Index: p.sweptOff, Scale: 1,
					Disp: j * kernel.MaskBytes(g.Lanes())}
			}
		}
		m.values = g.values(p, row)
		g.row(g.line(k), g.line(k+1), g.line(k+2), m, p.variant)
		end := "rows_done"
		if !p.bare {
			end = p.label("end", k)
		}
		g.ADDQ(operand.U8(8), row)
		g.CMPQ(row, p.end)
		g.JE(operand.LabelRef(end))
	}
	g.JMP(operand.LabelRef(p.label("row", 0)))
	return row
}

// ofRow returns the entry of a row in a list of the Span.
func ofRow(p pass, row reg.Register, list uintptr) operand.Mem {
	return operand.Mem{Base: p.span, Index: row, Scale: 1, Disp: int(list)}
}

// loadOfRow loads the entry of a row in a list of the Span.
func (g *generator) loadOfRow(p pass, row reg.Register, list uintptr) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(ofRow(p, row, list), r)
	return r
}

// values returns b of a block of a row, and the weights if there are terms, in the order of solver.Value.
func (g *generator) values(p pass, row reg.Register) (values []blockMem) {
	var span kernel.Span
	if p.operator == kernel.Plain {
		return nil
	}
	n := p.operator.Terms()
	if n > 0 { // first, while there is a register for it
		ahead := g.loadOfRow(p, row, unsafe.Offsetof(span.Ahead))
		for line := 0; line < kernel.AheadBytes; line += 64 {
			g.PREFETCHT0(operand.Mem{Base: ahead, Index: p.off, Scale: uint8(n), Disp: line})
		}
	}
	values = append(values, g.block(g.loadOfRow(p, row, unsafe.Offsetof(span.Sources)), p.off))
	if n == 0 {
		return values
	}
	terms := g.loadOfRow(p, row, unsafe.Offsetof(span.Terms))
	g.LEAQ(operand.Mem{Base: terms, Index: p.off, Scale: uint8(n)}, terms)
	for k := range n {
		var block blockMem
		for j := range block {
			block[j] = operand.Mem{Base: terms, Disp: (4*k + j) * g.Bytes()}
		}
		values = append(values, block)
	}
	return values
}

// bits returns the bits of v in the type.
func (g *generator) bits(v float64) uint64 {
	return assembly.Of(g.Machine, uint64(math.Float32bits(float32(v))), math.Float64bits(v))
}

// integer returns n in as many bits as the type has.
func (g *generator) integer(n uint64) operand.Constant {
	return assembly.Of[operand.Constant](g.Machine, operand.U32(n), operand.U64(n))
}

// float returns v in the type.
func (g *generator) float(v float64) operand.Constant {
	return assembly.Of[operand.Constant](g.Machine, operand.F32(v), operand.F64(v))
}

// smallest returns the smallest normal number of the type.
func (g *generator) smallest() float64 { return assembly.Of(g.Machine, power(-126), power(-1022)) }

// power returns 2^n.
func power(n int) float64 { return math.Ldexp(1, n) }

// verdict writes the end of collect: it returns true, or false from the label refused on.
func (g *generator) verdict() {
	ok, err := g.ReturnIndex(0).Resolve()
	if err != nil {
		panic(err) // the declaration has no such result
	}
	g.MOVB(operand.U8(1), ok.Addr)
	g.VZEROUPPER()
	g.RET()
	g.Label("refused")
	g.MOVB(operand.U8(0), ok.Addr)
	g.VZEROUPPER()
	g.RET()
}

// constant declares read-only data of n equal values and returns its place.
func (g *generator) constant(name string, n int, v operand.Constant) operand.Mem {
	values := make([]operand.Constant, n)
	for i := range values {
		values[i] = v
	}
	return g.table(name, values)
}

// table declares read-only data once and returns its place.
func (g *generator) table(name string, values []operand.Constant) operand.Mem {
	if m, ok := g.tables[name]; ok {
		return m
	}
	m := g.StaticGlobal(fmt.Sprintf("%s%s", name, g.Suffix()))
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, v := range values {
		g.AppendDatum(v)
	}
	g.tables[name] = m
	return m
}
