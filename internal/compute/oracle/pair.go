package oracle

import "math"

// pair is the sum of two float64, the second of which is below half a unit in the last place of the first.
type pair struct{ hi, lo float64 }

// sum returns a+b exactly (Knuth's two-sum).
func sum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// product returns a*b exactly, if nothing underflows.
func product(a, b float64) pair {
	p := float64(a * b)
	return pair{p, math.FMA(a, b, -p)}
}

// add returns p+q with a relative error of about 2^-104 of the larger one.
func (p pair) add(q pair) pair {
	s, t := sum(p.hi, q.hi), sum(p.lo, q.lo)
	s = sum(s.hi, s.lo+t.hi)
	return sum(s.hi, s.lo+t.lo)
}

// times returns p*v.
func (p pair) times(v float64) pair {
	q := product(p.hi, v)
	return sum(q.hi, math.FMA(p.lo, v, q.lo))
}

// minus returns v-p.
func (p pair) minus(v float64) pair { return pair{hi: v}.add(pair{-p.hi, -p.lo}) }
