package solver

import (
	"errors"
	"fmt"
)

// Operator is the update of a point from its four neighbours. The zero Operator is the plain average,
//
//	new = 0.25 * ((west + east) + (north + south))
//
// and any other one is
//
//	s = west + east    t = north + south    new = fma(Scale, fma(Blend, t - s, s), b)
//
// where each addition, subtraction and fma is rounded once, in the field's type, and b is the source at the point.
// Scale, Blend and b follow from spacings, screening and the right-hand side (docs/numerics.md). At a Neumann wall the
// value beyond the wall is that of the mirror point: east stands for west in column 0, south for north in row 0, and
// so on.
type Operator struct {
	// Scale is h > 0 and at most 0.5; Blend is q, 0 < q < 1. Both are values of the field's type, and both are 0 for
	// the plain average.
	Scale, Blend float64
	// Source yields b; nil for 0 everywhere. The plain average has no source.
	Source SourceRows
	// Fixed yields the points that keep their initial values besides the fixed walls; nil for none.
	Fixed FixedRows
}

// SourceRows yields the source of an Operator.
type SourceRows interface {
	// SourceRow writes b in row iy, 0 <= iy < NY, to dst: NX finite values of the mesh's type, little-endian, dense.
	// Points that no sweep updates have any finite value. Several goroutines may call it at once.
	SourceRow(iy int, dst []byte) error
}

// FixedRows yields the fixed points of an Operator.
type FixedRows interface {
	// FixedRow sets dst[ix], 0 <= ix < NX, for each point of row iy, 0 <= iy < NY: true if it keeps its value. In rows
	// and columns of walls it agrees with their copies if they are periodic. Several goroutines may call it at once.
	FixedRow(iy int, dst []bool) error
}

// Plain reports whether o is the plain average, perhaps with fixed points.
func (o Operator) Plain() bool { return o.Scale == 0 }

// General returns o with the numbers of the general update in place of the plain average.
func (o Operator) General() Operator {
	if o.Plain() {
		o.Scale, o.Blend = 0.5, 0.5
	}
	return o
}

// Check returns an error for an Operator that no run can have.
func (o Operator) Check(t DType) error {
	switch {
	case o.Plain() && o.Blend != 0:
		return fmt.Errorf("operator: blend %v without scale", o.Blend)
	case o.Plain() && o.Source != nil:
		return errors.New("operator: a plain average with a source")
	case o.Plain():
		return nil
	case !(o.Scale > 0 && o.Scale <= 0.5 && o.Blend > 0 && o.Blend < 1):
		return fmt.Errorf("operator: scale %v, blend %v: allowed are (0, 0.5] and (0, 1)", o.Scale, o.Blend)
	case t == Float32 && (o.Scale != float64(float32(o.Scale)) || o.Blend != float64(float32(o.Blend))):
		return fmt.Errorf("operator: scale %v, blend %v: not %v values", o.Scale, o.Blend, t)
	}
	return nil
}
