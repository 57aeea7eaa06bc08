// Package operator writes the update of a vector of points for the generators of assembly: of the sweeps of package
// kernel, and of the rows of package levels.
package operator

// Quarter is the weight of the sum of the four neighbours.
const Quarter = 0.25

// Operator writes the plain average
//
//	new = 0.25 * ((west + east) + (north + south))
//
// and the general operator
//
//	s = west + east    t = north + south    new = fma(h, fma(q, t - s, s), b)
//
// in steps, which a machine places where its registers allow. The order of the operations is fixed, and each one rounds
// once: see docs/numerics.md. R is a register or several, and M an operand that may lie in memory. Operands are in the
// order of the assembler's instructions, the result last. Blend and Scale return the register of their result, which is
// n or that of the addend, and may overwrite both.
type Operator[M, R any] struct {
	Add      func(a M, b, to R)       // to = a + b
	Subtract func(a, b, to R)         // to = b - a
	Quarter  func(x, to R, tiny bool) // to = Quarter * x; with tiny it is fast for denormal results too
	Blend    func(s, n R) R           // fma(q, n, s)
	Scale    func(b M, n R) R         // fma(h, n, b)
}

// Neighbours adds two opposite neighbours: west and east, or north and south.
func (o Operator[M, R]) Neighbours(a M, b, to R) { o.Add(a, b, to) }

// Sum adds the two sums of neighbours.
func (o Operator[M, R]) Sum(a M, b, to R) { o.Add(a, b, to) }

// Average computes the new value from the sum of all four neighbours.
func (o Operator[M, R]) Average(sum, to R, tiny bool) { o.Quarter(sum, to, tiny) }

// General returns the register of the new value by the general operator. n holds t, and is overwritten.
func (o Operator[M, R]) General(s, n R, b M) R {
	o.Subtract(s, n, n)
	return o.Scale(b, o.Blend(s, n))
}
