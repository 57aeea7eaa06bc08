package elementary

import (
	"math"
	"math/big"
)

// Pow returns x^y.
func Pow(x, y float64) float64 {
	if x == 0 || y == 0 || x == 1 || y == 1 || math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(x) || math.IsNaN(y) {
		return math.Pow(x, y) // the special cases of C
	}
	a, sign := math.Abs(x), 1.0
	if x < 0 {
		if y != math.Trunc(y) {
			return math.NaN()
		}
		if math.Mod(y, 2) != 0 {
			sign = -1
		}
	}
	switch y {
	case 2:
		return a * a
	case -1:
		return 1 / x
	case 0.5:
		return math.Sqrt(x)
	}
	if a == 1 {
		return sign
	}
	return sign * powPositive(a, y)
}

// powPositive returns e^(y ln x) for finite x > 0 other than 1 and finite y other than 0 and 1. The relative error of
// the logarithm is multiplied by y ln x.
func powPositive(x, y float64) float64 {
	l := logPair(x)
	size := float64(y * l.hi)
	switch {
	case size > 710:
		return math.Inf(1)
	case size < -746:
		return 0
	case math.Abs(size) < 0x1p-60:
		return 1
	}
	p, k := expPair(l.mulFloat(y))
	if v, ok := p.rounded(k, errPair*(1+math.Abs(size))); ok {
		return v
	}
	if v, ok := powRational(x, y); ok {
		return v
	}
	return exactly(func(w working) *big.Float { return w.exp(w.mul(w.float(y), w.log(w.float(x)))) })
}

// powRational returns x^y, and true, if the value is rational and may be a float64 or the midpoint of two. Such a value
// has at most 54 bits. With y = n/2^k, x must then be the 2^k-th power of some o 2^i, o odd. Either o is 1, or o^n has
// at most 54 bits, so that 0 < n < 35 and k < 6.
func powRational(x, y float64) (float64, bool) {
	root := x
	k := 0
	for ; y != math.Trunc(y); k++ {
		if k == 6 {
			return 0, false
		}
		y *= 2
		r := math.Sqrt(root)
		if t := twoProduct(r, r); t.hi != root || t.lo != 0 {
			return 0, false
		}
		root = r
	}
	frac, exp := math.Frexp(root)
	for frac != math.Trunc(frac) {
		frac, exp = 2*frac, exp-1
	}
	if frac == 1 { // 2^exp: |y exp| < 1100
		return math.Ldexp(1, int(float64(y*float64(exp)))), true
	}
	if y < 0 || y > 64 {
		return 0, false
	}
	n := new(big.Int).Exp(big.NewInt(int64(frac)), big.NewInt(int64(y)), nil)
	v, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(n), exp*int(y)).Float64()
	return v, true
}

// Cbrt returns the cube root of x.
func Cbrt(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	m, e := math.Frexp(math.Abs(x))
	for e%3 != 0 {
		m, e = 2*m, e-1
	}
	y := math.Cbrt(m)
	d := pair{m, 0}.sub(twoProduct(y, y).mulFloat(y))
	p := quickTwoSum(y, d.hi/(3*float64(y*y)))
	v := p.nearest(e/3, func(w working) *big.Float { return w.cbrt(w.float(math.Abs(x))) })
	return math.Copysign(v, x)
}

// Hypot returns sqrt(x*x + y*y).
func Hypot(x, y float64) float64 {
	if math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(x) || math.IsNaN(y) {
		return math.Hypot(x, y)
	}
	x, y = max(math.Abs(x), math.Abs(y)), min(math.Abs(x), math.Abs(y))
	m, n, e := x, y, 0
	if !(y > 0x1p-240 && x < 0x1p240 && y > float64(x*0x1p-60)) {
		var f int
		m, e = math.Frexp(x)
		n, f = math.Frexp(y)
		if y == 0 || e-f > 60 {
			return x
		}
		n = math.Ldexp(n, f-e)
	}
	a, b := twoProduct(m, m), twoProduct(n, n)
	s := quickTwoSum(a.hi, b.hi)
	if v, ok := quickTwoSum(s.hi, s.lo+(a.lo+b.lo)).sqrt().rounded(e, errPair); ok {
		return v
	}
	return hypotInteger(x, y)
}

// hypotInteger returns sqrt(x*x + y*y) by an integer square root, which is exact. No working precision suffices,
// because the value may be the midpoint of two float64s.
func hypotInteger(x, y float64) float64 {
	const unit = 1200 // bits after the binary point; a float64 has at most 1074
	square := func(v float64) *big.Int {
		n, _ := new(big.Float).SetMantExp(big.NewFloat(v), unit).Int(nil)
		return n.Mul(n, n)
	}
	s := square(x)
	s.Add(s, square(y))
	root := new(big.Int).Sqrt(s)
	rest := s.Sub(s, new(big.Int).Mul(root, root))
	root.Lsh(root, 1)
	if rest.Sign() != 0 {
		root.SetBit(root, 0, 1)
	}
	v, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(root), -unit-1).Float64()
	return v
}
