package elementary

import (
	"math"
	"math/big"
)

// perLn10 is 1 / ln 10.
var perLn10 = pair{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57}

// logPair returns ln x for x > 0 as k ln 2 + ln m, where x = m 2^k and m is near 1. ln m is y = math.Log(m) plus a
// correction: ln m - y = ln(1 + d) with d = (m - e^y) / e^y, which is below 2^-48 y.
func logPair(x float64) pair {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	y := math.Log(m)
	u := expm1(pair{y, 0})
	d := pair{m - 1, 0}.sub(u)
	c := d.hi / (1 + u.hi)
	p := quickTwoSum(y, c-float64(0.5*float64(c*c)))
	if k == 0 {
		return p
	}
	n := float64(k)
	return pair{float64(n * ln2High), 0}.add(ln2.mulFloat(n)).add(p)
}

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	if special, v := logSpecial(x); special {
		return v
	}
	return logPair(x).nearest(0, func(w working) *big.Float { return w.log(w.float(x)) })
}

// Log10 returns the decimal logarithm of x.
func Log10(x float64) float64 {
	if special, v := logSpecial(x); special {
		return v
	}
	return logPair(x).mul(perLn10).nearest(0, func(w working) *big.Float { return w.log10(w.float(x)) })
}

func logSpecial(x float64) (special bool, v float64) {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return true, x
	case x < 0:
		return true, math.NaN()
	case x == 0:
		return true, math.Inf(-1)
	case x == 1:
		return true, 0
	}
	return false, 0
}
