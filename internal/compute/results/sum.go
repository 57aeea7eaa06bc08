package results

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// digitBits is the number of bits of a digit of a Sum; sumDigits is enough of them for any number of float64.
const (
	digitBits = 32
	sumDigits = 70
)

// Sum is an exact sum of float64, and so the same for every order of its terms: an integer in units of 2^-1074, the
// smallest number above 0, in digits of 32 bits. The zero Sum is 0.
type Sum struct {
	digits [sumDigits]int64 // least significant first; between carries a digit may exceed its bits, and be negative
	adds   int              // since the last carry
	bad    bool             // a term was not finite
}

// Add adds v.
func (s *Sum) Add(v float64) {
	b := math.Float64bits(v)
	exp := int(b >> 52 & 0x7ff)
	mant := b & (1<<52 - 1)
	switch exp {
	case 0x7ff:
		s.bad = true
		return
	case 0:
		exp = 1
	default:
		mant |= 1 << 52
	}
	place, shift := (exp-1)/digitBits, uint(exp-1)%digitBits
	high, low := bits.Mul64(mant, 1<<shift)
	parts := [3]int64{int64(low & (1<<digitBits - 1)), int64(low >> digitBits), int64(high)}
	for i, part := range parts {
		if b>>63 != 0 {
			part = -part
		}
		s.digits[place+i] += part
	}
	if s.adds++; s.adds == 1<<30 {
		s.carry()
	}
}

// carry brings all digits but the last into the range from 0 to 2^32 - 1.
func (s *Sum) carry() {
	for i := range sumDigits - 1 {
		over := s.digits[i] >> digitBits // rounds down
		s.digits[i] -= over << digitBits
		s.digits[i+1] += over
	}
	s.adds = 0
}

// Merge adds other.
func (s *Sum) Merge(other *Sum) {
	s.carry()
	o := *other
	o.carry()
	for i, d := range o.digits {
		s.digits[i] += d
	}
	s.adds = 1
	s.bad = s.bad || o.bad
}

// units returns the sum in units of 2^-1074.
func (s *Sum) units() *big.Int {
	v := new(big.Int)
	for i := sumDigits - 1; i >= 0; i-- {
		v.Lsh(v, digitBits)
		v.Add(v, big.NewInt(s.digits[i]))
	}
	return v
}

// Value returns the sum rounded once to float64; NaN if a term was not finite, and an infinity beyond the largest
// float64.
func (s *Sum) Value() float64 {
	if s.bad {
		return math.NaN()
	}
	f := new(big.Float).SetInt(s.units())
	v, _ := f.SetMantExp(f, -1074).Float64()
	return v
}

// MarshalText writes the sum for another rank.
func (s Sum) MarshalText() ([]byte, error) {
	if s.bad {
		return []byte("bad"), nil
	}
	return []byte(s.units().Text(62)), nil
}

// maxSumText is more than the length of any sum.
const maxSumText = 500

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
	if !ok || v.BitLen() > digitBits*(sumDigits-1) {
		return fmt.Errorf("%d bytes are not a sum", len(text))
	}
	sign := int64(v.Sign())
	v.Abs(v)
	mask := big.NewInt(1<<digitBits - 1)
	for i := range s.digits {
		s.digits[i] = sign * new(big.Int).And(v, mask).Int64()
		v.Rsh(v, digitBits)
	}
	s.adds = 1
	return nil
}
