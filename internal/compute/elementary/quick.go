package elementary

import "math"

// Sines, cosines and angles are tried with quicker pairs first, which decide the rounding of all but about one argument
// in 300: those of a multiple of 1/64, from a table, turned by the rest.

// errQuick bounds the relative error of quick pairs. The tests measure errors below a quarter of it.
const errQuick = 0x1p-63

// circle has the sines and the cosines of k/64.
var circle = func() (table [52]direction) {
	for k := range table {
		r := pair{float64(k) / 64, 0}
		table[k] = direction{sinPair(r), cosPair(r)}
	}
	return table
}()

type direction struct{ sin, cos pair }

// turn is an angle: that of a direction of the circle, and d more, with sin d = d + rise and cos d = 1 + fall.
type turn struct {
	from          *direction
	d, rise, fall float64
}

// turnOf returns the angle r, 0 <= r < 0.79. The terms left out are below 2^-70. d is exact: it is a multiple of the
// last place of r, and no larger than r, as numbers up to 0.51/64 belong to 0.
func turnOf(r pair) turn {
	k := math.Floor(float64(r.hi*64) + 0.49)
	d := r.hi - float64(k/64)
	x := float64(d * d)
	rise := math.FMA(math.FMA(math.FMA(-1.0/5040, x, 1.0/120), x, -1.0/6), float64(x*d), r.lo)
	fall := math.FMA(math.FMA(math.FMA(-1.0/720, x, 1.0/24), x, -0.5), x, float64(-d*r.lo))
	return turn{&circle[int(k)], d, rise, fall}
}

func (t turn) sine() pair   { return t.of(t.from.sin, t.from.cos) }
func (t turn) cosine() pair { return t.of(t.from.cos, t.from.sin.neg()) }

// of returns p cos d + q sin d. |p| is 0, or larger than |q d|. What is rounded once is below 2^-14 of the sum.
func (t turn) of(p, q pair) pair {
	product := twoProduct(q.hi, t.d)
	s := quickTwoSum(p.hi, product.hi)
	small := math.FMA(q.hi, t.rise, float64(p.hi*t.fall)) + (math.FMA(q.lo, t.d, p.lo) + product.lo)
	return quickTwoSum(s.hi, s.lo+small)
}
