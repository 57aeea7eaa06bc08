package solver

import (
	"math"
	"math/bits"
)

// Integer is the memory of an exact sum: an integer in two's complement in units of a power of two, least significant
// limb first. Addition is modulo 2^(64 len), so the sum does not depend on the order of its terms.
type Integer []uint64

// AddFloat adds v, cut toward zero to a multiple of the unit 2^unit. It adds nothing and returns false if v is not
// finite, or if |v| is 2^most units or more.
func (x Integer) AddFloat(v float64, unit, most int) bool {
	b := math.Float64bits(v)
	exp, n := int(b>>52&0x7ff), b&(1<<52-1)
	switch exp {
	case 0x7ff:
		return false
	case 0:
		exp = 1
	default:
		n |= 1 << 52
	}
	shift := exp - 1075 - unit // |v| = n * 2^(shift+unit)
	if shift < 0 {
		n, shift = n>>-shift, 0
	}
	if shift+bits.Len64(n) > most {
		return n == 0
	}
	if b>>63 == 0 {
		x.AddScaled(n, shift)
	} else {
		x.SubScaled(n, shift)
	}
	return true
}

// AddScaled adds n * 2^shift, for a shift inside x. It returns the carry out of x.
func (x Integer) AddScaled(n uint64, shift int) (carry uint64) {
	x = x[shift/64:]
	bit := uint(shift % 64)
	x[0], carry = bits.Add64(x[0], n<<bit, 0)
	if len(x) == 1 {
		return carry
	}
	x[1], carry = bits.Add64(x[1], n>>1>>(63-bit), carry)
	for i := 2; i < len(x); i++ {
		x[i], carry = bits.Add64(x[i], 0, carry)
	}
	return carry
}

// SubScaled subtracts n * 2^shift, for a shift inside x.
func (x Integer) SubScaled(n uint64, shift int) {
	x = x[shift/64:]
	bit := uint(shift % 64)
	var borrow uint64
	x[0], borrow = bits.Sub64(x[0], n<<bit, 0)
	if len(x) == 1 {
		return
	}
	x[1], borrow = bits.Sub64(x[1], n>>1>>(63-bit), borrow)
	for i := 2; i < len(x); i++ {
		x[i], borrow = bits.Sub64(x[i], 0, borrow)
	}
}

// Add adds the limbs of y, a number >= 0 or as long as x, up to the length of x. It returns the carry out of x.
func (x Integer) Add(y []uint64) (carry uint64) {
	n := min(len(x), len(y))
	for i := range n {
		x[i], carry = bits.Add64(x[i], y[i], carry)
	}
	for i := n; carry != 0 && i < len(x); i++ {
		x[i], carry = bits.Add64(x[i], 0, carry)
	}
	return carry
}

// Negative reports whether x is below 0.
func (x Integer) Negative() bool { return x[len(x)-1]>>63 != 0 }

// Float returns x * 2^unit, rounded once to float64.
func (x Integer) Float(unit int) float64 {
	if x.Negative() {
		minus, borrow := make(Integer, len(x)+1), uint64(0)
		for i, limb := range x {
			minus[i], borrow = bits.Sub64(0, limb, borrow)
		}
		return -minus.Float(unit)
	}
	top := len(x) - 1
	for top > 0 && x[top] == 0 {
		top--
	}
	shift := bits.LeadingZeros64(x[top]) % 64
	upper, more := x[top]<<shift, uint64(0) // the upper 64 bits, and whether a lower one is set
	for i, limb := range x[:top] {
		if i == top-1 {
			upper |= limb >> (64 - shift)
			limb <<= shift
		}
		more |= limb
	}
	// The last bits of upper are below those of the result, which has fewer if it is denormal. They round it to the
	// nearest, to even between two.
	exp := 64*top - shift + unit
	below := max(11, -1074-exp)
	if below > 64 {
		return 0
	}
	n, rest, half := upper>>below, upper&(1<<below-1), uint64(1)<<(below-1)
	if rest > half || rest == half && (more != 0 || n&1 != 0) {
		n++
	}
	return math.Ldexp(float64(n), exp+below)
}
