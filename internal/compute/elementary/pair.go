package elementary

import "math"

// pair is the unevaluated sum hi + lo, with |lo| at most half a unit in the last place of hi: a number of about 106
// bits.
//
// The operations are those of Dekker (1971) and Knuth (TAOCP 2, 4.2.2). The error of a product is computed with
// math.FMA, which gives the same bits on every processor. The relative errors of operations are below 2^-101. Explicit
// conversions to float64 keep the compiler from fusing a product with a following sum.
type pair struct{ hi, lo float64 }

// twoSum returns a + b exactly.
func twoSum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// quickTwoSum returns a + b exactly; |a| >= |b|, or a is 0.
func quickTwoSum(a, b float64) pair {
	s := a + b
	return pair{s, b - (s - a)}
}

// twoProduct returns a * b exactly unless it underflows.
func twoProduct(a, b float64) pair {
	p := float64(a * b)
	return pair{p, math.FMA(a, b, -p)}
}

func (p pair) neg() pair { return pair{-p.hi, -p.lo} }

func (p pair) add(q pair) pair {
	s, t := twoSum(p.hi, q.hi), twoSum(p.lo, q.lo)
	s = quickTwoSum(s.hi, s.lo+t.hi)
	return quickTwoSum(s.hi, s.lo+t.lo)
}

func (p pair) sub(q pair) pair { return p.add(q.neg()) }

// addFloat returns p + a.
func (p pair) addFloat(a float64) pair {
	s := twoSum(p.hi, a)
	return quickTwoSum(s.hi, s.lo+p.lo)
}

func (p pair) mul(q pair) pair {
	t := twoProduct(p.hi, q.hi)
	return quickTwoSum(t.hi, t.lo+math.FMA(p.hi, q.lo, float64(p.lo*q.hi)))
}

// mulFloat returns p * a.
func (p pair) mulFloat(a float64) pair {
	t := twoProduct(p.hi, a)
	return quickTwoSum(t.hi, math.FMA(p.lo, a, t.lo))
}

// scaled returns p * 2^n. The result must not underflow or overflow.
func (p pair) scaled(n int) pair {
	f := math.Float64frombits(uint64(n+1023) << 52)
	return pair{float64(p.hi * f), float64(p.lo * f)}
}

// horner returns c + p*r, a step of Horner's rule, for |p*r| <= |c|. The lo of the result may be a few units in the
// last place of its hi.
func (p pair) horner(r, c pair) pair {
	t := float64(p.hi * r.hi)
	low := math.FMA(p.hi, r.hi, -t) + math.FMA(p.hi, r.lo, float64(p.lo*r.hi))
	s := c.hi + t
	return pair{s, (t - (s - c.hi)) + (c.lo + low)}
}

func (p pair) div(q pair) pair {
	a := p.hi / q.hi
	t := twoProduct(a, q.hi)
	rest := (p.hi - t.hi) - t.lo + p.lo // p - a * q.hi; the difference p.hi - t.hi is exact
	return quickTwoSum(a, math.FMA(-a, q.lo, rest)/q.hi)
}

// sqrt returns the square root of p >= 0.
func (p pair) sqrt() pair {
	if p.hi == 0 {
		return pair{}
	}
	a := math.Sqrt(p.hi)
	t := twoProduct(a, a)
	return quickTwoSum(a, ((p.hi-t.hi)-t.lo+p.lo)/(2*a))
}
