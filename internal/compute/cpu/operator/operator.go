// Package operator writes the update of a vector of points for the generators of assembly: of the sweeps of package
// kernel, and of the rows of package levels.
package operator

import (
	"fmt"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

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

// Terms writes the updates that add products of neighbours and weights to the source, both values of the point: the
// weighted operator
//
//	new = fma(w, west, fma(e, east, fma(n, north, fma(s, south, b))))
//
// R and M are as for Operator.
type Terms[M, R any] struct {
	Load func(v M) R // the first sum
	// Fma and Into return the register of fma(weight, value, sum). Fma may overwrite the sum, Into the value.
	Fma, Into func(weight M, value, sum R) R
}

// Update returns the register of the new value of a point by o, whose values are v. The northern value is overwritten.
func (t Terms[M, R]) Update(o kernel.Operator, v []M, west, east, north, south R) R {
	if o != kernel.Weighted {
		panic(fmt.Sprintf("operator %d has no terms", o))
	}
	sum := t.Load(v[solver.Source])
	sum = t.Fma(v[solver.South], south, sum)
	sum = t.Into(v[solver.North], north, sum)
	sum = t.Fma(v[solver.East], east, sum)
	return t.Fma(v[solver.West], west, sum)
}
