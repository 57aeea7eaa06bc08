package solver

import (
	"encoding/binary"
	"fmt"
	"math"
)

// UnitBits places the unit of a Sum: 2^(2E - UnitBits), where E is the Magnitude of the problem.
const UnitBits = 134

// Sum is an exact sum of squares, independent of the order of its terms: a 192-bit unsigned integer, least significant
// limb first, in units of 2^(2E-134) with E the Magnitude of the problem.
//
// Each term is the sum of one group (see GroupRows) in the field's type, which Add truncates to a multiple of the unit.
// A group holds 32 points with |new-old| <= 2^(E+1), so a term is at most 2^141 units, and 2^50 terms fit. The error
// bound and its proof are in docs/numerics.md.
type Sum struct {
	Limbs [3]uint64
	// Bad is set if a term was not a number, infinite, or larger than any sweep can make it.
	Bad bool
}

// SumBytes is the length of a Sum on the wire.
const SumBytes = 25

// maxTermBits is the length in bits of the largest term of a correct sweep, 2^141 units.
const maxTermBits = 142

// Add adds the term group >= 0, the sum of one group's squares, truncated to a multiple of the unit.
func (s *Sum) Add(group float64, e Magnitude) {
	if group < 0 || !Integer(s.Limbs[:]).AddFloat(group, 2*int(e)-UnitBits, maxTermBits) {
		s.Bad = true
	}
}

// AddScaled adds n * 2^shift units, 0 <= shift <= 127. Kernels that collect terms in fixed-point limbs of their own use
// it.
func (s *Sum) AddScaled(n uint64, shift int) {
	if Integer(s.Limbs[:]).AddScaled(n, shift) != 0 {
		s.Bad = true
	}
}

// Merge adds other to s.
func (s *Sum) Merge(other Sum) {
	if Integer(s.Limbs[:]).Add(other.Limbs[:]) != 0 || other.Bad {
		s.Bad = true
	}
}

// Float returns the sum, rounded once to float64; NaN for a bad one.
func (s Sum) Float(e Magnitude) float64 {
	if s.Bad {
		return math.NaN()
	}
	return Integer{s.Limbs[0], s.Limbs[1], s.Limbs[2], 0}.Float(2*int(e) - UnitBits)
}

// Norm returns the L2 norm: the square root, in float64, of Float.
func (s Sum) Norm(e Magnitude) float64 { return math.Sqrt(s.Float(e)) }

// AppendBinary appends the SumBytes bytes of s to b.
func (s Sum) AppendBinary(b []byte) []byte {
	for _, limb := range s.Limbs {
		b = binary.LittleEndian.AppendUint64(b, limb)
	}
	if s.Bad {
		return append(b, 1)
	}
	return append(b, 0)
}

// SumFromBinary reads the first SumBytes bytes of b.
func SumFromBinary(b []byte) (Sum, error) {
	if len(b) < SumBytes || b[24] > 1 {
		return Sum{}, fmt.Errorf("sum: %d bytes, %d wanted, the last 0 or 1", len(b), SumBytes)
	}
	var s Sum
	for i := range s.Limbs {
		s.Limbs[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	s.Bad = b[24] == 1
	return s, nil
}
