package elementary

import (
	"math"
	"math/big"
)

// Reciprocals of n! that a float64 cannot represent. Constant expressions are exact until they are stored.
var (
	reciprocal3 = pair{1.0 / 6, 1.0/6 - 0x1.5555555555555p-3}
	reciprocal4 = pair{1.0 / 24, 1.0/24 - 0x1.5555555555555p-5}
	reciprocal5 = pair{1.0 / 120, 1.0/120 - 0x1.1111111111111p-7}
	reciprocal6 = pair{1.0 / 720, 1.0/720 - 0x1.6c16c16c16c17p-10}
	reciprocal7 = pair{1.0 / 5040, 1.0/5040 - 0x1.a01a01a01a01ap-13}
	reciprocal8 = pair{1.0 / 40320, 1.0/40320 - 0x1.a01a01a01a01ap-16}
	reciprocal9 = pair{1.0 / 362880, 1.0/362880 - 0x1.71de3a556c734p-19}
)

// ln 2 is ln2High + ln2. ln2High has 41 bits, so its product with an exponent is exact.
const ln2High = 0x1.62e42fefa3p-1

var (
	ln2   = pair{0x1.3de6af278ece6p-42, 0x1.f97b57a079a19p-103}
	perLn = 1 / math.Ln2
)

// reduceExp returns r and k with p = r + k ln 2 and |r| < 0.35; |p| < 1100.
func reduceExp(p pair) (r pair, k int) {
	n := math.Floor(float64(p.hi*perLn) + 0.5)
	return p.addFloat(float64(-n * ln2High)).sub(ln2.mulFloat(n)), int(n)
}

// expm1 returns e^r - 1 for |r| < 0.35: r (1/1! + r (1/2! + r (1/3! + ...))), up to r^18/18!. The omitted terms are
// below 2^-84 of the sum. The terms from r^7 on are 2^-22.5 of the sum, so float64 suffices for them; summing even and
// odd powers separately is faster.
func expm1(r pair) pair {
	x := r.hi
	xx := float64(x * x)
	even := math.FMA(1.0/6402373705728000, xx, 1.0/20922789888000)
	even = math.FMA(even, xx, 1.0/87178291200)
	even = math.FMA(even, xx, 1.0/479001600)
	even = math.FMA(even, xx, 1.0/3628800)
	even = math.FMA(even, xx, 1.0/40320)
	odd := math.FMA(1.0/355687428096000, xx, 1.0/1307674368000)
	odd = math.FMA(odd, xx, 1.0/6227020800)
	odd = math.FMA(odd, xx, 1.0/39916800)
	odd = math.FMA(odd, xx, 1.0/362880)
	odd = math.FMA(odd, xx, 1.0/5040)
	s := pair{math.FMA(even, x, odd), 0}.horner(r, reciprocal6)
	s = s.horner(r, reciprocal5).horner(r, reciprocal4).horner(r, reciprocal3)
	s = s.horner(r, pair{0.5, 0}).horner(r, pair{1, 0})
	return s.mul(r)
}

// expPair returns e^p, |p| < 1100, as a pair and an exponent k: the pair times 2^k.
func expPair(p pair) (pair, int) {
	r, k := reduceExp(p)
	return expm1(r).addFloat(1), k
}

// Exp returns e^x.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	case math.Abs(x) < 0x1p-60:
		return 1
	}
	p, k := expPair(pair{x, 0})
	return p.nearest(k, func(w working) *big.Float { return w.exp(w.float(x)) })
}

// Sinh returns the hyperbolic sine of x.
func Sinh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a >= 0x1p-28): // x + x^3/6 - ... rounds to x
		return x
	case a > 711:
		return math.Copysign(math.Inf(1), x)
	}
	p, k := sinhPair(a)
	v := p.nearest(k-1, func(w working) *big.Float { return w.sinh(w.float(a)) })
	return math.Copysign(v, x)
}

// sinhPair returns e^a - e^-a for 2^-28 <= a <= 711 as a pair and an exponent k: the pair times 2^k.
func sinhPair(a float64) (pair, int) {
	if a < 0.34 {
		u := expm1(pair{a, 0})
		return u.add(u.div(u.addFloat(1))), 0
	}
	p, k := expPair(pair{a, 0})
	if a > 40 {
		return p, k // e^-2a is below 2^-115
	}
	return p.sub(pair{1, 0}.div(p).scaled(-2 * k)), k
}

// Cosh returns the hyperbolic cosine of x.
func Cosh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return x
	case a < 0x1p-28:
		return 1
	case a > 711:
		return math.Inf(1)
	}
	p, k := expPair(pair{a, 0})
	if a <= 40 {
		p = p.add(pair{1, 0}.div(p).scaled(-2 * k))
	}
	return p.nearest(k-1, func(w working) *big.Float { return w.cosh(w.float(a)) })
}

// Tanh returns the hyperbolic tangent of x.
func Tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a >= 0x1p-28):
		return x
	case a > 22: // 1 - 2 e^-2a + ... rounds to 1
		return math.Copysign(1, x)
	}
	u := pair{}
	if a < 0.17 {
		u = expm1(pair{2 * a, 0})
	} else {
		p, k := expPair(pair{2 * a, 0})
		u = p.scaled(k).addFloat(-1)
	}
	v := u.div(u.addFloat(2)).nearest(0, func(w working) *big.Float { return w.tanh(w.float(a)) })
	return math.Copysign(v, x)
}
