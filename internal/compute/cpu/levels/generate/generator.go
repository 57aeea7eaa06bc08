package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/assembly"
)

// The order of the fields of rowArgs, which are 8 bytes each: pointers, the number of values, constants, and the
// pointers of sweeps alone. A constant has the type of the field in its lowest bytes.
const (
	argDst = iota
	argA
	argB
	argC
	argD
	argE
	argF
	argN
	argX
	argY
	argZ
	argAhead
	argDst2
	argAhead2
	argDiagonal
	argEast
	argNorth
	argSouth
	argSouthEast
	argSouthWest
	argNorthEast
	argNorthWest
	argCentre
	argP
	argPNorth
	argPSouth
)

// argRows is the first of all rows that sweeps and the set-up of levels have.
const argRows = argDiagonal

// generator writes functions for one machine. Each takes a pointer to rowArgs and works through n values, n at least
// one vector. The last vector may overlap the one before it.
type generator struct {
	*assembly.Machine
	args reg.GPVirtual
	i    reg.GPVirtual // index of the vector's first value
}

// zero sets v to +0.
func (g *generator) zero(v reg.VecPhysical) {
	if g.Wide {
		g.VPXORD(v, v, v)
	} else {
		g.VPXOR(v, v, v)
	}
}

// function begins a function.
func (g *generator) function(name string) {
	g.Begin(name, name, "(r *rowArgs)")
	g.args = g.GP64()
	g.Load(g.Param("r"), g.args)
}

// pointer loads a pointer of the arguments.
func (g *generator) pointer(arg int) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(operand.Mem{Base: g.args, Disp: 8 * arg}, r)
	return r
}

// constant spreads a constant of the arguments.
func (g *generator) constant(arg int, v reg.VecPhysical) {
	g.Broadcast(operand.Mem{Base: g.args, Disp: 8 * arg}, v)
}

// at returns the values of a row at the present index, shifted by a number of values.
func (g *generator) at(base reg.GPVirtual, shift int) operand.Mem {
	return g.sized(base, shift, g.Size)
}

func (g *generator) sized(base reg.GPVirtual, shift, size int) operand.Mem {
	return operand.Mem{Base: base, Index: g.i, Scale: uint8(size), Disp: shift * size}
}

// loop ends a function with a loop of body over n values.
func (g *generator) loop(body func()) {
	n, last, step := g.pointer(argN), g.GP64(), g.Lanes()
	g.i = g.GP64()
	g.XORQ(g.i, g.i)
	g.LEAQ(operand.Mem{Base: n, Disp: -step}, last)
	g.Label("loop")
	body()
	g.ADDQ(operand.Imm(uint64(step)), g.i)
	g.CMPQ(g.i, last)
	g.JLE(operand.LabelRef("loop"))
	g.CMPQ(g.i, n)
	g.JGE(operand.LabelRef("done"))
	g.MOVQ(last, g.i)
	g.JMP(operand.LabelRef("loop"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

// ahead fetches what lies some lines behind values into the cache. Rows that come from memory need it: without it, the
// processor waits at the beginning of each page.
func (g *generator) ahead(values operand.Mem) {
	values.Disp += 1024
	g.PREFETCHT0(values)
}

// loopOver ends a function with a loop of body over the vectors with the first n values. The last one may go on behind
// them, into the values that a row has behind its columns. before is done once.
func (g *generator) loopOver(before, body func()) {
	g.i = g.GP64()
	g.XORQ(g.i, g.i)
	before()
	g.Label("loop")
	body()
	g.ADDQ(operand.Imm(uint64(g.Lanes())), g.i)
	g.CMPQ(g.i, operand.Mem{Base: g.args, Disp: 8 * argN})
	g.JLT(operand.LabelRef("loop"))
	g.VZEROUPPER()
	g.RET()
}

// band is a row of which the values beside the present vector are read, too. With AVX-512 it is read once, and vectors
// are shifted in registers: prev and cur are the vector before the present one and that itself, and next is the one
// behind it.
type band struct {
	base            reg.GPVirtual
	prev, cur, next reg.VecPhysical
}

// begin loads the vectors before the first turn of a loop. A band without next is read to the west only, and has no cur
// yet; one without prev is read to the east only.
func (g *generator) begin(bands ...band) {
	for _, b := range bands {
		if b.prev != nil && g.Wide {
			g.Mov(g.at(b.base, -g.Lanes()), b.prev)
		}
		if b.next != nil && g.Wide {
			g.Mov(g.at(b.base, 0), b.cur)
		}
	}
}

// turn loads the vectors of a turn that are not there yet.
func (g *generator) turn(bands ...band) {
	for _, b := range bands {
		switch {
		case !g.Wide:
		case b.next != nil:
			g.Mov(g.at(b.base, g.Lanes()), b.next)
		default:
			g.Mov(g.at(b.base, 0), b.cur)
		}
	}
}

// pass makes the vectors of a turn those of the next turn.
func (g *generator) pass(bands ...band) {
	for _, b := range bands {
		if b.prev != nil && g.Wide {
			g.Mov(b.cur, b.prev)
		}
		if b.next != nil && g.Wide {
			g.Mov(b.next, b.cur)
		}
	}
}

// beside returns the values of a band shifted by -1, 0 or 1, in a register that may be t or in memory.
func (g *generator) beside(b band, shift int, t reg.VecPhysical) operand.Op {
	switch {
	case !g.Wide:
		return g.at(b.base, shift)
	case shift < 0:
		g.Align(operand.U8(g.Lanes()-1), b.prev, b.cur, t)
		return t
	case shift > 0:
		g.Align(operand.U8(1), b.cur, b.next, t)
		return t
	}
	return b.cur
}
