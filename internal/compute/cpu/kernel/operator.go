package kernel

// The operators in plain Go: how one sweep makes the new value of a point from the values of the sweep before. The
// sweeps of this package and those of the levels of multigrid call them. The order of the operations is part of the
// results: docs/numerics.md. Package operator has it for the generated functions.

// update returns the new value of a point by the plain average. The conversion keeps the compiler from fusing the
// product with an operation of the caller.
func update[F float](west, east, north, south F) F {
	return F(F(0.25) * ((west + east) + (north + south)))
}

// General returns the new value of a point by the general operator, with weights h and q and source b.
func General[F float](west, east, north, south, h, q, b F) F {
	s, t := west+east, north+south
	return FMA(h, FMA(q, t-s, s), b)
}

// Defect returns the update of a point by the general operator: its new value less its value.
func Defect[F float](centre, west, east, north, south, h, q, b F) F {
	return General(west, east, north, south, h, q, b) - centre
}
