package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quarter is the weight of the sum of the four neighbours.
const quarter = 0.25

// operator writes the update of a vector of points,
//
//	new = 0.25 * ((west + east) + (north + south))
//
// in three steps, which a machine places where its registers allow. The order of the operations is fixed: see
// docs/numerics.md. Operands are in the order of the assembler's instructions, the result last.
type operator struct {
	add   func(...operand.Op)
	scale func(x, to reg.VecPhysical, tiny bool) // to = quarter * x; with tiny it is fast for denormal results too
}

// neighbours adds two opposite neighbours: west and east, or north and south.
func (o operator) neighbours(a operand.Op, b, to reg.VecPhysical) { o.add(a, b, to) }

// sum adds the two sums of neighbours.
func (o operator) sum(a operand.Op, b, to reg.VecPhysical) { o.add(a, b, to) }

// value computes the new value from the sum of all four neighbours.
func (o operator) value(sum, to reg.VecPhysical, tiny bool) { o.scale(sum, to, tiny) }

// general writes the update of a vector of points by the general operator,
//
//	s = west + east    t = north + south    new = fma(h, fma(q, t - s, s), b)
//
// with each operation rounded once.
type general struct {
	sub    func(...operand.Op)
	blend  func(s, n reg.VecPhysical)             // n = fma(q, n, s)
	scale  func(b operand.Mem, n reg.VecPhysical) // n = fma(h, n, b)
	weight func(u, n reg.VecPhysical)             // n = fma(weight, n, u)
}

// weigh turns n, which holds the new value of a plain sweep, into that of one with a weight,
//
//	d = n - u    n = fma(weight, d, u)
func (o general) weigh(u, n reg.VecPhysical) {
	o.sub(u, n, n)
	o.weight(u, n)
}

// value turns n, which holds t, into the new value.
func (o general) value(s, n reg.VecPhysical, b operand.Mem) {
	o.sub(s, n, n)
	o.blend(s, n)
	o.scale(b, n)
}
