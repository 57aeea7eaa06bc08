package solver

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
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
	b := math.Float64bits(group)
	exp := int(b >> 52 & 0x7ff)
	mant := b & (1<<52 - 1)
	switch {
	case b>>63 != 0 && group != 0 || exp == 0x7ff:
		s.Bad = true
		return
	case exp == 0:
		exp = 1
	default:
		mant |= 1 << 52
	}
	shift := exp - 1075 + UnitBits - 2*int(e) // group = mant * 2^(exp-1075)
	if shift < 0 {
		if shift > -64 {
			s.addShifted(mant>>-shift, 0)
		}
		return
	}
	if mant != 0 && shift+bits.Len64(mant) > maxTermBits {
		s.Bad = true
		return
	}
	s.addShifted(mant, shift)
}

// AddScaled adds n * 2^shift units, 0 <= shift <= 127. Kernels that collect terms in fixed-point limbs of their own use
// it.
func (s *Sum) AddScaled(n uint64, shift int) { s.addShifted(n, shift) }

func (s *Sum) addShifted(n uint64, shift int) {
	var t [4]uint64
	word, bit := shift/64, uint(shift%64)
	t[word] = n << bit
	if bit != 0 {
		t[word+1] = n >> (64 - bit)
	}
	s.addLimbs([3]uint64{t[0], t[1], t[2]})
}

func (s *Sum) addLimbs(t [3]uint64) {
	var c uint64
	for i := range s.Limbs {
		s.Limbs[i], c = bits.Add64(s.Limbs[i], t[i], c)
	}
	if c != 0 {
		s.Bad = true
	}
}

// Merge adds other to s.
func (s *Sum) Merge(other Sum) {
	s.addLimbs(other.Limbs)
	s.Bad = s.Bad || other.Bad
}

// Norm returns the L2 norm: the square root, in float64, of the sum rounded once to float64; NaN for
// a bad sum.
func (s Sum) Norm(e Magnitude) float64 {
	if s.Bad {
		return math.NaN()
	}
	return math.Sqrt(s.float(2*int(e) - UnitBits))
}

// float returns the sum times 2^exp, rounded once.
func (s Sum) float(exp int) float64 {
	top := len(s.Limbs) - 1
	for top > 0 && s.Limbs[top] == 0 {
		top--
	}
	// Round from the upper 64 bits, the last of which is also set if any lower bit is. Rounding to 53 bits needs no
	// more.
	shift := bits.LeadingZeros64(s.Limbs[top]) % 64
	upper := s.Limbs[top] << shift
	if top > 0 {
		below := s.Limbs[top-1] << shift
		upper |= s.Limbs[top-1] >> (64 - shift)
		if below != 0 || top > 1 && s.Limbs[0] != 0 {
			upper |= 1
		}
	}
	if v := math.Ldexp(float64(upper), 64*top-shift+exp); v >= 0x1p-1022 || upper == 0 {
		return v
	}
	// A denormal result has fewer bits, so the code above would round twice.
	var b [24]byte
	for i, limb := range s.Limbs {
		binary.BigEndian.PutUint64(b[16-8*i:], limb)
	}
	f := new(big.Float).SetInt(new(big.Int).SetBytes(b[:]))
	v, _ := f.SetMantExp(f, exp).Float64()
	return v
}

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
