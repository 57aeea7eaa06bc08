// Package elementary has the functions of the standard library's math, correctly rounded: each returns the float64 that
// is nearest to the true value, and the even one of two that are equally near. The value therefore does not depend on
// the processor, the architecture, the compiler or the version of Go. Those of math do.
//
// A function first computes a pair: the unevaluated sum of two float64, with a relative error below 2^-71. If all
// numbers within that error round to the same float64, that is the value. Otherwise, about once in 100,000 times, the
// function computes with math/big, in 160 bits, then in 320, and so on until all numbers within the error round alike.
// This is Ziv's strategy ("Fast evaluation of elementary mathematical functions with correctly rounded last bit", ACM
// TOMS 17, 1991). It ends, because the true value is transcendental (Lindemann) but for a few arguments. There it is a
// float64, which any precision finds, or the functions with algebraic values, pow and hypot, decide in integers.
//
// Two series are behind all functions: that of exp and that of sine and cosine. An inverse function starts from the
// value that math returns, whatever its last bits are, and corrects it by one step of Newton's method, which doubles
// the number of correct bits.
//
// The special cases (NaN, infinities, zeros) are those of math.
package elementary

import "math"

// errPair bounds the relative error of pairs. The tests measure less than a quarter of it.
const errPair = 0x1p-71

// rounded returns the float64 nearest to p * 2^exp, and whether that is certain with a relative error of p up to err. p
// lies between 2^-500 and 2^500 and is positive where the result may be denormal.
func (p pair) rounded(exp int, err float64) (v float64, certain bool) {
	margin := float64(math.Abs(p.hi) * err)
	low, high := p.lo-margin, p.lo+margin
	if -900 < exp && exp < 900 && 0x1p-100 < math.Abs(p.hi) && math.Abs(p.hi) < 0x1p100 || exp == 0 {
		v = p.hi + low
		return v * math.Float64frombits(uint64(exp+1023)<<52), v == p.hi+high
	}
	if _, e := math.Frexp(p.hi); e+exp > -1022 {
		v = p.hi + low
		return math.Ldexp(v, exp), v == p.hi+high
	}
	// The last place of a denormal number is 2^-1074. Beside 2^-1022, p * 2^exp is rounded to it.
	base := math.Ldexp(1, -1022-exp)
	s := twoSum(base, p.hi)
	low, high = s.hi+(s.lo+low), s.hi+(s.lo+high)
	return math.Ldexp(low-base, exp), low == high
}
