// Package elementary provides functions of the standard library's math, correctly rounded: each returns the float64
// nearest to the true value, and of two equally near ones the even one. The result therefore does not depend on the
// processor, the architecture, the compiler or the version of Go. The results of package math do.
//
// A function first computes a pair: the unevaluated sum of two float64s, with a relative error below 2^-71. If all
// numbers within that error round to the same float64, that is the result. Otherwise, about once in 100,000 times, the
// function computes with math/big in 160 bits, then in 320, and so on, until all numbers within the error round to the
// same float64. This is Ziv's strategy ("Fast evaluation of elementary mathematical functions with correctly rounded
// last bit", ACM TOMS 17, 1991). The loop ends because the true value is transcendental (Lindemann) except at a few
// arguments. There the value is either a float64, which any precision finds, or an algebraic value of pow or hypot,
// which these functions round with integer arithmetic.
//
// Sines, cosines and angles try a quicker pair before that (quick.go).
//
// All functions use two series: one for exp and one for sine and cosine. An inverse function starts from the value of
// package math, whose last bits may be wrong, and corrects it by one step of Newton's method, which doubles the number
// of correct bits.
//
// Special cases (NaN, infinities, zeros) give the results of package math.
package elementary

import (
	"math"
	"math/big"
)

// errPair bounds the relative error of pairs. The tests measure errors below a quarter of it.
const errPair = 0x1p-71

// nearest returns the float64 nearest to p * 2^exp, which f computes in any precision; p is as rounded wants it.
func (p pair) nearest(exp int, f func(w working) *big.Float) float64 {
	if v, certain := p.rounded(exp, errPair); certain {
		return v
	}
	return exactly(f)
}

// rounded returns the float64 nearest to p * 2^exp, and whether it is certain given a relative error of p up to err.
// |p| must lie between 2^-500 and 2^500, and p must be positive if the result may be denormal.
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
	// The last place of a denormal number is 2^-1074. Adding 2^-1022 rounds p * 2^exp to that place.
	base := math.Ldexp(1, -1022-exp)
	s := twoSum(base, p.hi)
	low, high = s.hi+(s.lo+low), s.hi+(s.lo+high)
	return math.Ldexp(low-base, exp), low == high
}
