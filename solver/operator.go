package solver

import (
	"errors"
	"fmt"
)

// Operator is the update of a point from its four neighbours. The zero Operator is the plain average,
//
//	new = 0.25 * ((west + east) + (north + south))
//
// one with a Scale is the general operator,
//
//	s = west + east    t = north + south    new = fma(Scale, fma(Blend, t - s, s), b)
//
// and a weighted one gives each point weights w, e, n and s of its own:
//
//	new = fma(w, west, fma(e, east, fma(n, north, fma(s, south, b))))
//
// where each addition, subtraction and fma is rounded once, in the field's type, and b is the source at the point.
// Scale, Blend, the weights and b follow from spacings, screening, coefficient and right-hand side
// (docs/numerics.md). At a Neumann wall the value beyond the wall is that of the mirror point, for all three: east
// stands for west in column 0, south for north in row 0, and so on. A weight of 0 makes the value beyond the wall count
// for no more than the sign of a 0.
type Operator struct {
	// Scale is h > 0 and at most 0.5; Blend is q, 0 < q < 1. Both are values of the field's type, and both are 0 for
	// the plain average and for weighted points.
	Scale, Blend float64
	// Weighted is set if each point has weights of its own. Ratio is then (hx/hy)^2, by which multigrid chooses the
	// directions that it coarsens. Contrast is the largest diagonal over that of equal coefficients with the least
	// weight above 0, from which multigrid chooses the levels whose cycles are done twice; 0 if that is not known.
	// Sweeps need neither.
	Weighted        bool
	Ratio, Contrast float64
	// Open says that weighted points border on points without a material. Multigrid then counts the operator as a hard
	// one.
	Open bool
	// Values yields the values that a point has besides that of the field. For the general operator they are b, and nil
	// stands for 0 everywhere. The plain average has none, and a weighted operator has all that ValuesPerPoint counts.
	Values ValueRows
	// Loose says that nothing determines the constant of a solution: no wall, no point and no screening. The source
	// then adds up to 0 over the mesh, up to rounding. Only multigrid solves that.
	Loose bool
	// Fixed yields the points that keep their initial values besides the fixed walls; nil for none.
	Fixed FixedRows
}

// Value is one of the values that a point has besides that of the field.
type Value uint8

// The values. A sweep reads the first Operator.ValuesPerPoint of them.
const (
	Source Value = iota // b
	West                // the weight of the western neighbour, and so on: at least 0 and at most 1, and all four of a
	East                // point add up to at most 1, up to rounding
	North
	South
	// For multigrid, and always float64 values: the diagonal of the equation of the point, and its couplings to the
	// eastern and the southern neighbour, which are the weights that the two have of each other times their diagonals.
	// All are scaled by one power of two, so that the largest diagonal lies between 1/2 and 1, and by 1/2 on a Neumann
	// wall or a wall with a heat transfer. A coupling to a point that no sweep updates is given wherever its row is
	// read.
	Diagonal
	EastFace
	SouthFace
	// Of an Assembled operator, float64 values, too: the coefficient, and the right-hand side of the equation before
	// it is divided by the diagonal.
	Coefficient
	RightHandSide

	sweepValues = int(Diagonal) // of a weighted point
)

// Assembled is the ValueRows of a weighted operator whose equations may follow from Coefficient and RightHandSide.
type Assembled interface {
	// Assembly reports whether Diagonal, EastFace, SouthFace and Source do, in all rows but the first and the last one.
	// No side is periodic then, and no point inside is fixed.
	Assembly() (Assembly, bool)
}

// Assembly has the numbers that they need besides (docs/numerics.md): with c the harmonic mean 2ab/(a+b) of the
// coefficients of two points over HX^2 or HY^2, and D the sum of the four c around a point,
//
//	Source = RightHandSide/D    Diagonal = D HX HY Unit    EastFace, SouthFace = c HX HY Unit
//
// Each operation is rounded in float64, from left to right, and D = (west + east) + (north + south). On a left or right
// Neumann wall the mirror point counts beyond it, and D and the southern c are multiplied by 1/2 before the rest. On a
// fixed wall Source and Diagonal are 0, and EastFace is 0 in the last column.
type Assembly struct{ HX, HY, Unit float64 }

// String names a value.
func (k Value) String() string {
	names := []string{"source", "western weight", "eastern weight", "northern weight", "southern weight", "diagonal",
		"eastern coupling", "southern coupling", "coefficient", "right-hand side"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Value(%d)", uint8(k))
}

// ValueRows yields the values of the points of an Operator.
type ValueRows interface {
	// ValueRow writes value k of row iy, 0 <= iy < NY, to dst: NX finite values of the mesh's type, little-endian,
	// dense. Points that no sweep updates have any finite value. Several goroutines may call it at once.
	ValueRow(iy int, k Value, dst []byte) error
}

// FixedRows yields the fixed points of an Operator.
type FixedRows interface {
	// FixedRow sets dst[ix], 0 <= ix < NX, for each point of row iy, 0 <= iy < NY: true if it keeps its value. In rows
	// and columns of walls it agrees with their copies if they are periodic. Several goroutines may call it at once.
	FixedRow(iy int, dst []bool) error
}

// Plain reports whether o is the plain average, perhaps with fixed points.
func (o Operator) Plain() bool { return o.Scale == 0 && !o.Weighted }

// General returns o with the numbers of the general update in place of the plain average.
func (o Operator) General() Operator {
	if o.Plain() {
		o.Scale, o.Blend = 0.5, 0.5
	}
	return o
}

// ValuesPerPoint returns the number of values, from Source on, that a sweep reads at each point.
func (o Operator) ValuesPerPoint() int {
	switch {
	case o.Weighted:
		return sweepValues
	case o.Values != nil:
		return 1
	}
	return 0
}

// Check returns an error for an Operator that no run can have.
func (o Operator) Check(t DType) error {
	switch {
	case o.Weighted && (o.Scale != 0 || o.Blend != 0):
		return fmt.Errorf("operator: scale %v, blend %v: a weighted operator has neither", o.Scale, o.Blend)
	case o.Weighted && o.Values == nil:
		return errors.New("operator: weighted, but without the values of points")
	case o.Weighted:
		return nil
	case o.Plain() && o.Blend != 0:
		return fmt.Errorf("operator: blend %v without scale", o.Blend)
	case o.Plain() && o.Values != nil:
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
