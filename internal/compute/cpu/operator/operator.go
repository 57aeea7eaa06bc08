// Package operator writes the update of a vector of points for the generators of assembly: of the sweeps of package
// kernel, and of the rows of package levels.
package operator

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/assembly"
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
// once: see docs/numerics.md. Operands are in the order of the assembler's instructions, the result last.
type Operator struct {
	Add, Subtract func(...operand.Op) // to = a + b, and to = b - a
	// Quarter sets to = Quarter * x. With tiny it is fast for denormal results too.
	Quarter func(x, to reg.VecPhysical, tiny bool)
	Blend   func(s, n reg.VecPhysical)            // n = fma(q, n, s)
	Scale   func(b operand.Op, n reg.VecPhysical) // n = fma(h, n, b)
}

// New returns the operator with h and q in registers, without Quarter.
func New(m *assembly.Machine, h, q reg.VecPhysical) Operator {
	return Operator{
		Add: m.Add, Subtract: m.Sub,
		Blend: func(s, n reg.VecPhysical) { m.FMA213(s, q, n) },
		Scale: func(b operand.Op, n reg.VecPhysical) { m.FMA213(b, h, n) },
	}
}

// Neighbours adds two opposite neighbours: west and east, or north and south.
func (o Operator) Neighbours(a operand.Op, b, to reg.VecPhysical) { o.Add(a, b, to) }

// Sum adds the two sums of neighbours.
func (o Operator) Sum(a operand.Op, b, to reg.VecPhysical) { o.Add(a, b, to) }

// Average computes the new value from the sum of all four neighbours.
func (o Operator) Average(sum, to reg.VecPhysical, tiny bool) { o.Quarter(sum, to, tiny) }

// General makes n, which holds t, the new value by the general operator.
func (o Operator) General(s, n reg.VecPhysical, b operand.Op) {
	o.Subtract(s, n, n)
	o.Blend(s, n)
	o.Scale(b, n)
}

// Terms writes the update that adds products of neighbours and weights to the source, both values of the point: the
// weighted operator
//
//	new = fma(w, west, fma(e, east, fma(n, north, fma(s, south, b))))
type Terms struct {
	Load func(v operand.Op) reg.VecPhysical // the first sum
	// Fma and Into return the register of fma(weight, value, sum). Fma may overwrite the sum, Into the value.
	Fma, Into func(weight operand.Op, value, sum reg.VecPhysical) reg.VecPhysical
}

// Update returns the register of the new value of a point, whose values are v. The northern value is overwritten.
func (t Terms) Update(v []operand.Op, west, east, north, south reg.VecPhysical) reg.VecPhysical {
	sum := t.Load(v[solver.Source])
	sum = t.Fma(v[solver.South], south, sum)
	sum = t.Into(v[solver.North], north, sum)
	sum = t.Fma(v[solver.East], east, sum)
	return t.Fma(v[solver.West], west, sum)
}
