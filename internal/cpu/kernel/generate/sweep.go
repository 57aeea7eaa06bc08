package main

import (
	"fmt"
	"unsafe"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/cpu/kernel"
)

// block is the registers or the places in memory of the four vectors of a block.
type (
	blockRegs [4]reg.VecPhysical
	blockMem  [4]operand.Mem
)

// machine is what differs between instruction sets and types of value.
type machine interface {
	use(g *generator)
	suffix() string   // of the names of functions
	vectorBytes() int // of a vector
	// line returns the registers of one of the three rows that are live at a time: above, at, below.
	line(i int) blockRegs
	prologue(v variant, masks blockMem)
	load(r reg.VecPhysical, m operand.Mem)
	loadAcc(acc operand.Mem, restart reg.GPVirtual)
	storeAcc(acc operand.Mem)
	// row sweeps the block c of a row between n and s: stores the new values, leaves vector 3 in carry and adds the squares of
	// the update to acc. n is overwritten. east is vector 0 of the next block.
	row(n, c, s blockRegs, carry, east operand.Mem, dst blockMem, v variant)
	collect()
	transposes()
}

// variant is a kind of sweep: under masks, or with stores that go past the caches.
type variant struct{ masked, stream bool }

// generator writes functions for one machine.
type generator struct {
	*build.Context
	machine
	signatures map[string]*gotypes.Signature // by declaration
	tables     map[string]operand.Mem        // read-only data by name
}

// function begins a function with the signature of a declaration.
func (g *generator) function(name, declaration string) {
	g.Function(name + g.suffix())
	g.Attributes(attr.NOSPLIT)
	g.Signature(g.signatures[declaration])
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
		m[j] = operand.Mem{Base: base, Index: index, Scale: 1, Disp: j * g.vectorBytes()}
	}
	return m
}

// sweep writes Sweep, Stream or Edge. It goes from block to block and, in a block, down the rows; the row above, the row
// and the row below stay in registers. The rows are written out, as many as a span may have, so that registers need not be moved.
func (g *generator) sweep(name string, v variant) {
	var span kernel.Span
	g.function(name, "sweep")
	s := g.param("s")
	off := g.loadField(s, unsafe.Offsetof(span.Off))
	acc := g.loadField(s, unsafe.Offsetof(span.Acc))
	g.ADDQ(field(s, unsafe.Offsetof(span.AccOff)), acc)
	carry := g.loadField(s, unsafe.Offsetof(span.Carry))
	restart := g.loadField(s, unsafe.Offsetof(span.Restart))
	blocks := g.loadField(s, unsafe.Offsetof(span.Blocks))
	var masks blockMem
	if v.masked {
		p := g.loadField(s, unsafe.Offsetof(span.Masks))
		for j := range masks {
			masks[j] = operand.Mem{Base: p, Disp: j * g.vectorBytes()}
		}
	}
	g.prologue(v, masks)

	src := func(i int) reg.Register { return g.loadField(s, unsafe.Offsetof(span.Src)+uintptr(8*i)) }
	g.Label("block")
	g.loadAcc(operand.Mem{Base: acc}, restart)
	above, at := src(0), src(1)
	for j, m := range g.block(above, off) {
		g.load(g.line(0)[j], m)
	}
	for j, m := range g.block(at, off) {
		g.load(g.line(1)[j], m)
	}
	for i := range kernel.Rows {
		g.Commentf("row %d", i)
		below := src(i + 2)
		for j, m := range g.block(below, off) {
			g.load(g.line(i + 2)[j], m)
		}
		dst := g.loadField(s, unsafe.Offsetof(span.Dst)+uintptr(8*i))
		east := operand.Mem{Base: at, Index: off, Scale: 1, Disp: 4 * g.vectorBytes()}
		g.row(g.line(i), g.line(i+1), g.line(i+2), operand.Mem{Base: carry, Disp: i * g.vectorBytes()}, east, g.block(dst, off), v)
		at = below
		if i+1 < kernel.Rows {
			g.CMPQ(field(s, unsafe.Offsetof(span.Rows)), operand.U8(i+1))
			g.JE(operand.LabelRef("rows_done"))
		}
	}
	g.Label("rows_done")
	g.storeAcc(operand.Mem{Base: acc})
	g.ADDQ(operand.U32(g.vectorBytes()), acc)
	g.ADDQ(operand.U32(4*g.vectorBytes()), off)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("block"))
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

// table declares read-only data, once, and returns its place.
func (g *generator) table(name string, values []operand.Constant) operand.Mem {
	if m, ok := g.tables[name]; ok {
		return m
	}
	m := g.StaticGlobal(fmt.Sprintf("%s%s", name, g.suffix()))
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, v := range values {
		g.AppendDatum(v)
	}
	g.tables[name] = m
	return m
}
