package reference

import (
	"math"

	"jacobi/solver"
)

// values are those of a point, by solver.Value, as far as sweeps read them.
type values [solver.Diagonal]float64

// arithmetic rounds each operation to a type.
type arithmetic solver.DType

// update returns the new value of a point: the operator (docs/numerics.md), as every other code that computes it is
// compared with. All numbers are those of the type.
func (a arithmetic) update(op solver.Operator, west, east, north, south float64, v values) float64 {
	b := v[solver.Source]
	if op.Weighted {
		return a.fma(v[solver.West], west, a.fma(v[solver.East], east,
			a.fma(v[solver.North], north, a.fma(v[solver.South], south, b))))
	}
	s, t := a.round(west+east), a.round(north+south)
	if op.Plain() {
		return a.round(0.25 * a.round(s+t))
	}
	return a.fma(op.Scale, a.fma(op.Blend, a.round(t-s), s), b)
}

// round rounds v to the type. For the sum, difference or product of two float32 values it returns the correctly rounded
// float32 result although v was already rounded to float64: 53 >= 2*24+2 bits (Figueroa, "When is double rounding
// innocuous?", 1995). The conversion also keeps the compiler from fusing.
func (a arithmetic) round(v float64) float64 {
	if solver.DType(a) == solver.Float32 {
		return float64(float32(v))
	}
	return float64(v)
}

// fma returns x*y+z, rounded once to the type.
func (a arithmetic) fma(x, y, z float64) float64 {
	if solver.DType(a) == solver.Float64 {
		return math.FMA(x, y, z)
	}
	p := float64(x * y) // exact: 24+24 bits
	s := p + z
	t := s - p
	err := (p - (s - t)) + (z - t) // s+err == p+z exactly (Knuth's two-sum)
	// Round s to odd, so that rounding it again to float32 rounds p+z once (Boldo and Melquiond, 2008).
	if b := math.Float64bits(s); err != 0 && b&1 == 0 {
		if (err > 0) == (s > 0) {
			s = math.Float64frombits(b + 1)
		} else {
			s = math.Float64frombits(b - 1)
		}
	}
	return float64(float32(s))
}
