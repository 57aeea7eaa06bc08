package kernel

import "jacobi/solver"

// Operator is an operator as sweeps know it: by its update and by the number of its values.
type Operator uint8

// The operators of solver.Operator.
const (
	Plain Operator = iota
	General
	Weighted

	operators // their number
)

// OperatorOf returns the operator of o.
func OperatorOf(o solver.Operator) Operator {
	switch {
	case o.Weighted:
		return Weighted
	case o.Plain():
		return Plain
	}
	return General
}

// Terms returns the number of weights that a point has of its own, in the order of solver.Value from solver.West on.
func (o Operator) Terms() int {
	return [operators]int{Weighted: int(solver.South - solver.Source)}[o]
}

// The updates in plain Go: how one sweep makes the new value of a point from the values of the sweep before. The sweeps
// of this package and those of the levels of multigrid call them. The order of the operations is part of the results:
// docs/numerics.md. Package operator has it for the generated functions.

// update returns the new value of a point by the plain average. The conversion keeps the compiler from fusing the
// product with an operation of the caller.
func update[F float](west, east, north, south F) F {
	return F(F(0.25) * ((west + east) + (north + south)))
}

// GeneralUpdate returns the new value of a point by the general operator, with weights h and q and source b.
func GeneralUpdate[F float](west, east, north, south, h, q, b F) F {
	s, t := west+east, north+south
	return FMA(h, FMA(q, t-s, s), b)
}

// Defect returns the update of a point by the general operator: its new value less its value.
func Defect[F float](centre, west, east, north, south, h, q, b F) F {
	return GeneralUpdate(west, east, north, south, h, q, b) - centre
}

// WeightedUpdate returns the new value of a point by the weighted operator, with weights w, e, n and s and source b.
func WeightedUpdate[F float](west, east, north, south, b, w, e, n, s F) F {
	return FMA(w, west, FMA(e, east, FMA(n, north, FMA(s, south, b))))
}

// updater returns the new value of a point with source b whose weight of term k is w[4*k].
type updater[F float] func(west, east, north, south, b F, w []F) F

// updaterOf returns the update by an operator for the points of a span.
func updaterOf[F float](o Operator, s *Span) updater[F] {
	switch o {
	case General:
		h := (*[2]F)(s.Weights)
		return func(west, east, north, south, b F, _ []F) F {
			return GeneralUpdate(west, east, north, south, h[0], h[1], b)
		}
	case Weighted:
		return func(west, east, north, south, b F, w []F) F {
			w = w[:13]
			return WeightedUpdate(west, east, north, south, b, w[0], w[4], w[8], w[12])
		}
	}
	return func(west, east, north, south, _ F, _ []F) F { return update(west, east, north, south) }
}
