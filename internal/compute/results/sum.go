package results

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"

	"jacobi/solver"
)

const (
	sumUnit  = -1074 // of a Sum: 2^sumUnit, the smallest number above 0
	sumLimbs = 35    // 2^2239 units: more than 2^140 of the largest float64
)

// Sum is an exact sum of float64, and so the same for every order of its terms. The zero Sum is 0.
type Sum struct {
	limbs [sumLimbs]uint64
	bad   bool // a term was not finite
}

// Add adds v.
func (s *Sum) Add(v float64) {
	if v != 0 && !solver.Integer(s.limbs[:]).AddFloat(v, sumUnit, 64*sumLimbs) {
		s.bad = true
	}
}

// Merge adds other.
func (s *Sum) Merge(other *Sum) {
	solver.Integer(s.limbs[:]).Add(other.limbs[:])
	s.bad = s.bad || other.bad
}

// Value returns the sum rounded once to float64; NaN if a term was not finite, and an infinity beyond the largest
// float64.
func (s *Sum) Value() float64 {
	if s.bad {
		return math.NaN()
	}
	return solver.Integer(s.limbs[:]).Float(sumUnit)
}

// MarshalText writes the sum for another rank: the number of units.
func (s Sum) MarshalText() ([]byte, error) {
	if s.bad {
		return []byte("bad"), nil
	}
	return []byte(s.units().Text(62)), nil
}

// units returns the number of units.
func (s *Sum) units() *big.Int {
	var b []byte
	for _, limb := range slices.Backward(s.limbs[:]) {
		b = binary.BigEndian.AppendUint64(b, limb)
	}
	v := new(big.Int).SetBytes(b)
	if solver.Integer(s.limbs[:]).Negative() {
		v.Sub(v, modulus())
	}
	return v
}

// Over returns the sum divided by n, which is above 0, rounded once; NaN if a term was not finite.
func (s *Sum) Over(n int64) float64 {
	if s.bad {
		return math.NaN()
	}
	v, _ := new(big.Rat).SetFrac(s.units(), new(big.Int).Lsh(big.NewInt(n), -sumUnit)).Float64()
	return v
}

// modulus returns what is 0 in the limbs of a Sum.
func modulus() *big.Int { return new(big.Int).Lsh(big.NewInt(1), 64*sumLimbs) }

// Of a text that may be a sum, the largest length and number of bits: one that is less leaves room for the others.
const (
	maxSumText = 500
	maxSumBits = 64*sumLimbs - 32
)

// UnmarshalText reads what MarshalText wrote.
func (s *Sum) UnmarshalText(text []byte) error {
	*s = Sum{}
	if string(text) == "bad" {
		s.bad = true
		return nil
	}
	v, ok := new(big.Int), len(text) <= maxSumText
	if ok {
		v, ok = v.SetString(string(text), 62)
	}
	if !ok || v.BitLen() > maxSumBits {
		return fmt.Errorf("%d bytes are not a sum", len(text))
	}
	if v.Sign() < 0 {
		v.Add(v, modulus())
	}
	b := v.FillBytes(make([]byte, 8*sumLimbs))
	for i := range s.limbs {
		s.limbs[sumLimbs-1-i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return nil
}
