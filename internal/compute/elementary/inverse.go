package elementary

import (
	"math"
	"math/big"
)

// asinPair returns the arc sine of q, 0 < q < 0.71: the value y of package math plus one step of Newton's method. The
// remaining error is of second order, below 2^-95.
func asinPair(q pair) pair {
	y := math.Asin(q.hi)
	r := pair{y, 0}
	return quickTwoSum(y, q.sub(sinPair(r)).hi/cosPair(r).hi)
}

// Asin returns the arc sine of x.
func Asin(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a <= 1):
		return math.NaN()
	case a < 0x1p-27: // x + x^3/6 + ... rounds to x
		return x
	}
	var p pair
	if a <= 0.5 {
		p = asinPair(pair{a, 0})
	} else {
		p = halfPi.sub(acosNear1(a))
	}
	v := p.nearest(0, func(w working) *big.Float { return w.asin(w.float(a)) })
	return math.Copysign(v, x)
}

// acosNear1 returns the arc cosine of a, 0.5 < a <= 1, as twice the arc sine of sqrt((1-a)/2).
func acosNear1(a float64) pair {
	if a == 1 {
		return pair{}
	}
	return asinPair(pair{(1 - a) / 2, 0}.sqrt()).scaled(1)
}

// Acos returns the arc cosine of x.
func Acos(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a <= 1):
		return math.NaN()
	case a < 0x1p-70:
		return math.Pi / 2
	case x == 1:
		return 0
	}
	var p pair
	switch {
	case x > 0.5:
		p = acosNear1(a)
	case x < -0.5:
		p = halfPi.scaled(1).sub(acosNear1(a))
	case x > 0:
		p = halfPi.sub(asinSmall(a))
	default:
		p = halfPi.add(asinSmall(a))
	}
	return p.nearest(0, func(w working) *big.Float { return w.acos(w.float(x)) })
}

// asinSmall returns the arc sine of a, 2^-70 < a <= 0.5.
func asinSmall(a float64) pair { return asinPair(pair{a, 0}) }

// Atan returns the arc tangent of x.
func Atan(x float64) float64 {
	if math.Abs(x) < 0x1p-27 { // x - x^3/3 + ... rounds to x
		return x
	}
	return Atan2(x, 1)
}

// Atan2 returns the angle of the point (x, y), between -pi and pi.
func Atan2(y, x float64) float64 {
	if x == 0 || y == 0 || math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(x) || math.IsNaN(y) {
		return math.Atan2(y, x) // a multiple of pi/4, or NaN
	}
	return math.Copysign(angle(math.Abs(y), x), y)
}

// angle returns the angle of the point (x, y), y > 0.
func angle(y, x float64) float64 {
	a := math.Abs(x)
	lesser, greater := min(a, y), max(a, y)
	m, n, e, f := lesser, greater, 0, 0
	if !(lesser > 0x1p-300 && greater < 0x1p300 && lesser > float64(greater*0x1p-100)) {
		m, e = math.Frexp(lesser)
		n, f = math.Frexp(greater)
		if f-e <= 100 {
			m = math.Ldexp(m, e-f)
		}
	}
	// The angle is start plus or minus the arc tangent of lesser/greater.
	var start pair
	subtract := true
	switch {
	case a < y:
		start, subtract = halfPi, x > 0
	case x < 0:
		start = halfPi.scaled(1)
	default:
		subtract = false
	}
	if f-e > 100 {
		if start.hi != 0 {
			return start.hi
		}
		if q := y / x; q > 0x1p-1021 {
			return q // the angle is slightly less than the quotient, which is never midway between two float64s
		}
	} else {
		at := math.Atan(m / n)
		p := pair{at, 0}
		t := turnOf(p)
		if v, ok := start.plus(atanPair(at, t.sine(), t.cosine(), m, n), subtract).rounded(0, errQuick); ok {
			return v
		}
		if v, ok := start.plus(atanPair(at, sinPair(p), cosPair(p), m, n), subtract).rounded(0, errPair); ok {
			return v
		}
	}
	return exactly(func(w working) *big.Float { return w.angle(w.float(y), w.float(x)) })
}

// atanPair returns the arc tangent of m/n, 2^-102 n < m <= n: the value y of package math, with the sine s and the
// cosine c, plus a correction. The tangent of the remaining angle is that of the point (n, m) rotated by -y.
func atanPair(y float64, s, c pair, m, n float64) pair {
	a, b := twoProduct(c.hi, m), twoProduct(s.hi, n) // nearly equal, so that their difference is exact
	across := (a.hi - b.hi) + (a.lo - b.lo + math.FMA(c.lo, m, float64(-s.lo*n)))
	return quickTwoSum(y, across/(float64(c.hi*n)+float64(s.hi*m)))
}

// plus returns p + q, or p - q.
func (p pair) plus(q pair, subtract bool) pair {
	if subtract {
		return p.sub(q)
	}
	return p.add(q)
}
