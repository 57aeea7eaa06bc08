package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/declare"
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

// generator writes functions for one instruction set and one type of value. Each takes a pointer to rowArgs and works
// through n values, n at least one vector. The last vector may overlap the one before it.
type generator struct {
	*build.Context
	wide  bool                // AVX-512
	size  int                 // bytes of a value
	v     [32]reg.VecPhysical // the second half for AVX-512 only
	half  [16]reg.VecPhysical // the lower halves
	bytes int                 // of a vector
	args  reg.GPVirtual
	i     reg.GPVirtual // index of the vector's first value

	declared declare.Table
}

func newGenerator(c *build.Context, wide bool, size int) *generator {
	g := &generator{Context: c, wide: wide, size: size, bytes: 32}
	y := [32]reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10,
		reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	x := [16]reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7, reg.X8, reg.X9, reg.X10,
		reg.X11, reg.X12, reg.X13, reg.X14, reg.X15}
	z := [32]reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10,
		reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22,
		reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}
	g.v, g.half = y, x
	if wide {
		g.v, g.half, g.bytes = z, [16]reg.VecPhysical(y[:16]), 64
	}
	g.declared = table(g.suffix(), g.bytes/g.size)
	return g
}

// op returns the instruction of the type: single for float32, double for float64.
func (g *generator) op(single, double func(...operand.Op), ops ...operand.Op) {
	if g.size == 4 {
		single(ops...)
	} else {
		double(ops...)
	}
}

func (g *generator) mov(ops ...operand.Op)   { g.op(g.VMOVUPS, g.VMOVUPD, ops...) }
func (g *generator) plus(ops ...operand.Op)  { g.op(g.VADDPS, g.VADDPD, ops...) }
func (g *generator) minus(ops ...operand.Op) { g.op(g.VSUBPS, g.VSUBPD, ops...) }
func (g *generator) times(ops ...operand.Op) { g.op(g.VMULPS, g.VMULPD, ops...) }

// fma sets x = x*y + z.
func (g *generator) fma(z operand.Op, y, x reg.VecPhysical) {
	g.op(g.VFMADD213PS, g.VFMADD213PD, z, y, x)
}

// zero sets v to +0.
func (g *generator) zero(v reg.VecPhysical) {
	if g.wide {
		g.VPXORD(v, v, v)
	} else {
		g.VPXOR(v, v, v)
	}
}

// function begins a function.
func (g *generator) function(name string) {
	g.Function(add(&g.declared, name, g.suffix()))
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(r *byte)")
	g.args = g.GP64()
	g.Load(g.Param("r"), g.args)
}

// suffix returns the end of the names of functions.
func (g *generator) suffix() string {
	if g.wide {
		return fmt.Sprintf("AVX512F%d", 8*g.size)
	}
	return fmt.Sprintf("AVX2F%d", 8*g.size)
}

// pointer loads a pointer of the arguments.
func (g *generator) pointer(arg int) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(operand.Mem{Base: g.args, Disp: 8 * arg}, r)
	return r
}

// constant spreads a constant of the arguments.
func (g *generator) constant(arg int, v reg.VecPhysical) {
	g.op(g.VBROADCASTSS, g.VBROADCASTSD, operand.Mem{Base: g.args, Disp: 8 * arg}, v)
}

// at returns the values of a row at the present index, shifted by a number of values.
func (g *generator) at(base reg.GPVirtual, shift int) operand.Mem {
	return g.sized(base, shift, g.size)
}

func (g *generator) sized(base reg.GPVirtual, shift, size int) operand.Mem {
	return operand.Mem{Base: base, Index: g.i, Scale: uint8(size), Disp: shift * size}
}

// loop ends a function with a loop of body over n values.
func (g *generator) loop(body func()) {
	n, last, step := g.pointer(argN), g.GP64(), g.bytes/g.size
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
	g.ADDQ(operand.Imm(uint64(g.bytes/g.size)), g.i)
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
		if b.prev != nil && g.wide {
			g.mov(g.at(b.base, -g.lanes()), b.prev)
		}
		if b.next != nil && g.wide {
			g.mov(g.at(b.base, 0), b.cur)
		}
	}
}

// turn loads the vectors of a turn that are not there yet.
func (g *generator) turn(bands ...band) {
	for _, b := range bands {
		switch {
		case !g.wide:
		case b.next != nil:
			g.mov(g.at(b.base, g.lanes()), b.next)
		default:
			g.mov(g.at(b.base, 0), b.cur)
		}
	}
}

// pass makes the vectors of a turn those of the next turn.
func (g *generator) pass(bands ...band) {
	for _, b := range bands {
		if b.prev != nil && g.wide {
			g.mov(b.cur, b.prev)
		}
		if b.next != nil && g.wide {
			g.mov(b.next, b.cur)
		}
	}
}

// beside returns the values of a band shifted by -1, 0 or 1, in a register that may be t or in memory.
func (g *generator) beside(b band, shift int, t reg.VecPhysical) operand.Op {
	switch {
	case !g.wide:
		return g.at(b.base, shift)
	case shift < 0:
		g.op(g.VALIGND, g.VALIGNQ, operand.U8(g.lanes()-1), b.prev, b.cur, t)
		return t
	case shift > 0:
		g.op(g.VALIGND, g.VALIGNQ, operand.U8(1), b.cur, b.next, t)
		return t
	}
	return b.cur
}

// lanes returns the number of values in a vector.
func (g *generator) lanes() int { return g.bytes / g.size }

// table begins the table of functions for one type of value, which take rows of at least the given number of values.
func table(suffix string, lanes int) declare.Table {
	return declare.Table{Name: "functions" + suffix, Type: "*functions",
		Value: fmt.Sprintf("&functions{lanes: %d}", lanes)}
}

// add adds a function to a table, and returns its name.
func add(t *declare.Table, name, suffix string) string {
	t.Functions = append(t.Functions, declare.Function{Name: name + suffix, Signature: "(r *rowArgs)", Field: name})
	return name + suffix
}
