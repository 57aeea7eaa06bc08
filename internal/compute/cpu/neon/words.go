package neon

import "fmt"

// Opcodes of vectors of float32. For float64 bit 22 is set too (Arm Architecture Reference Manual, C4.1, "Advanced SIMD
// three same" and "Advanced SIMD two-register miscellaneous").
const (
	opAdd      = 0x4e20d400
	opSubtract = 0x4ea0d400
	opMultiply = 0x6e20dc00
	opGreater  = 0x6ea0e400

	double = 1 << 22
)

// Opcodes with one type each.
const (
	opWidenLow  = 0x0e617800
	opWidenHigh = 0x4e617800
	opNarrowLow = 0x0e616800
	opNarrowTop = 0x4e616800
	opFloor     = 0x4e619800
	opToInteger = 0x6ee1b800
)

// word writes an instruction that Go's assembler lacks.
func (w *Writer) word(code uint32, format string, operands ...any) {
	fmt.Fprintf(&w.out, "\tWORD $0x%08x // %s\n", code, fmt.Sprintf(format, operands...))
}

// three writes an instruction with two operands and a result.
func (w *Writer) three(name string, opcode uint32, t Type, b, a, to Reg) {
	if t == Float64 {
		opcode |= double
	}
	s := t.suffix()
	w.word(opcode|uint32(b)<<16|uint32(a)<<5|uint32(to), "%s v%d.%s, v%d.%s, v%d.%s", name, to, s, a, s, b, s)
}

// two writes an instruction with one operand and a result.
func (w *Writer) two(name string, opcode uint32, from Reg, fromSuffix string, to Reg, toSuffix string) {
	w.word(opcode|uint32(from)<<5|uint32(to), "%s v%d.%s, v%d.%s", name, to, toSuffix, from, fromSuffix)
}

// Add sets to = a + b.
func (w *Writer) Add(t Type, b, a, to Reg) { w.three("fadd", opAdd, t, b, a, to) }

// Subtract sets to = a - b.
func (w *Writer) Subtract(t Type, b, a, to Reg) { w.three("fsub", opSubtract, t, b, a, to) }

// Multiply sets to = a * b.
func (w *Writer) Multiply(t Type, b, a, to Reg) { w.three("fmul", opMultiply, t, b, a, to) }

// Greater sets each lane of to to all bits where a > b, and clears it elsewhere, also where one is NaN.
func (w *Writer) Greater(t Type, b, a, to Reg) { w.three("fcmgt", opGreater, t, b, a, to) }

// WidenLow converts the lower two float32 values to float64.
func (w *Writer) WidenLow(from, to Reg) { w.two("fcvtl", opWidenLow, from, "2s", to, "2d") }

// WidenHigh converts the upper two float32 values to float64.
func (w *Writer) WidenHigh(from, to Reg) { w.two("fcvtl2", opWidenHigh, from, "4s", to, "2d") }

// NarrowLow rounds two float64 values to the lower two float32 values and clears the upper ones.
func (w *Writer) NarrowLow(from, to Reg) { w.two("fcvtn", opNarrowLow, from, "2d", to, "2s") }

// NarrowHigh rounds two float64 values to the upper two float32 values and keeps the lower ones.
func (w *Writer) NarrowHigh(from, to Reg) { w.two("fcvtn2", opNarrowTop, from, "2d", to, "4s") }

// Floor rounds float64 values down to integers.
func (w *Writer) Floor(from, to Reg) { w.two("frintm", opFloor, from, "2d", to, "2d") }

// ToInteger converts float64 values, which are not negative, to integers of 8 bytes and drops fractions.
func (w *Writer) ToInteger(from, to Reg) { w.two("fcvtzu", opToInteger, from, "2d", to, "2d") }
