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
type operator[R any] struct {
	add   func(a, b, to R)
	scale func(x, to R, tiny bool) // to = quarter * x; with tiny it is fast for denormal results too
}

// neighbours adds two opposite neighbours: west and east, or north and south.
func (o operator[R]) neighbours(a, b, to R) { o.add(a, b, to) }

// sum adds the two sums of neighbours.
func (o operator[R]) sum(a, b, to R) { o.add(a, b, to) }

// value computes the new value from the sum of all four neighbours.
func (o operator[R]) value(sum, to R, tiny bool) { o.scale(sum, to, tiny) }

// general writes the update of a vector of points by the general operator,
//
//	s = west + east    t = north + south    new = fma(h, fma(q, t - s, s), b)
//
// with each operation rounded once. M is the place of a vector of the source. The fused operations return the register
// of their result, which is n or that of the addend. They may overwrite both.
type general[M, R any] struct {
	sub    func(a, b, to R)
	blend  func(s, n R) R   // fma(q, n, s)
	scale  func(b M, n R) R // fma(h, n, b)
	weight func(u, n R) R   // fma(weight, n, u); keeps u
}

// weigh turns n, which holds the new value of a plain sweep, into that of one with a weight,
//
//	d = n - u    fma(weight, d, u)
//
// and returns its register.
func (o general[M, R]) weigh(u, n R) R {
	o.sub(u, n, n)
	return o.weight(u, n)
}

// value returns the register of the new value; n holds t.
func (o general[M, R]) value(s, n R, b M) R {
	o.sub(s, n, n)
	return o.scale(b, o.blend(s, n))
}

// three adapts an instruction of avo with three operands.
func three(f func(...operand.Op)) func(a, b, to reg.VecPhysical) {
	return func(a, b, to reg.VecPhysical) { f(a, b, to) }
}

// fused adapts a fused operation of avo with its result in n.
func fused[A any](f func(a A, n reg.VecPhysical)) func(a A, n reg.VecPhysical) reg.VecPhysical {
	return func(a A, n reg.VecPhysical) reg.VecPhysical {
		f(a, n)
		return n
	}
}
