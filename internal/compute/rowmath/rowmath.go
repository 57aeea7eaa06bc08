// Package rowmath has the arithmetic of rows of equations: loops over several rows of numbers, which processors with
// AVX2 do four numbers at a time. Each result is that of operations rounded one by one, so every processor computes the
// same bits.
package rowmath

import "math"

// Ratio returns a over b, and 0 if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Ratios sets dst to the ratios of a and b.
func Ratios(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := ratios(dst, a, b); i < len(dst); i++ {
		dst[i] = Ratio(a[i], b[i])
	}
}

// Mean returns the harmonic mean of two numbers, 0 if either is 0.
func Mean(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return float64(float64(2*a)*b) / (a + b)
}

// Means sets dst to the harmonic means of a and b.
func Means(dst, a, b []float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := means(dst, a, b); i < len(dst); i++ {
		dst[i] = Mean(a[i], b[i])
	}
}

// Fill sets all of dst to a value.
func Fill[T any](dst []T, v T) {
	if len(dst) == 0 {
		return
	}
	dst[0] = v
	for n := 1; n < len(dst); n *= 2 { // copies take less time than a loop
		copy(dst[n:], dst[:n])
	}
}

// Scale sets dst to a times factors, one after the other.
func Scale(dst, a []float64, factors ...float64) {
	a = a[:len(dst)]
	for i := scale(dst, a, factors); i < len(dst); i++ {
		v := a[i]
		for _, f := range factors {
			v = float64(v * f)
		}
		dst[i] = v
	}
}

// Quotients sets dst to a over d. Division takes longer than a product with the inverse. That of a power of two is
// rounded alike. With another inverse two fused operations, for the remainder and its quotient, give the bits of
// division (Brisebarre, Muller and Raina, IEEE Transactions on Computers 53, 2004).
func Quotients(dst, a []float64, d float64) {
	if fraction, _ := math.Frexp(d); fraction == 0.5 {
		Scale(dst, a, 1/d)
		return
	}
	a = a[:len(dst)]
	for i := quotients(dst, a, d); i < len(dst); i++ {
		dst[i] = a[i] / d
	}
}

// Shift sets dst to a plus b.
func Shift(dst, a []float64, b float64) {
	a = a[:len(dst)]
	for i := shift(dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] + b
	}
}

// Count sets dst to the numbers from first on, which are below 2^52, over d.
func Count(dst []float64, first int, d float64) {
	for i := count(dst, first, d); i < len(dst); i++ {
		dst[i] = float64(first+i) / d
	}
}

// Within returns how many of the first numbers are at least one and at most another.
func Within(a []float64, least, most float64) int {
	i := within(a, least, most)
	for i < len(a) && a[i] >= least && a[i] <= most {
		i++
	}
	return i
}

// Least returns the least of the numbers above 0, infinite without one, and whether there is a 0.
func Least(a []float64) (number float64, zero bool) {
	number = math.Inf(1)
	sofar := [4]float64{number, number, number, number}
	done, zero := least(a, &sofar)
	for _, part := range [2][]float64{sofar[:], a[done:]} {
		for _, v := range part {
			if v > 0 && v < number {
				number = v
			}
			zero = zero || v == 0
		}
	}
	return number, zero
}

// Largest returns the largest of the absolute values of numbers, without those that are NaN; 0 for none.
func Largest(a []float64) (number float64) {
	var sofar [4]float64
	done := largest(a, &sofar)
	for _, part := range [2][]float64{sofar[:], a[done:]} {
		for _, v := range part {
			if v = math.Abs(v); v > number {
				number = v
			}
		}
	}
	return number
}

// Centres sets dst to the sums of what leads from points to their four neighbours. along has one number more than dst:
// what leads to the point before and, in the next place, to the one after.
func Centres(dst, along, above, below []float64) {
	n := len(dst)
	along, above, below = along[:n+1], above[:n], below[:n]
	for i := centres(dst, along, above, below); i < n; i++ {
		dst[i] = (along[i] + along[i+1]) + (above[i] + below[i])
	}
}

// Points are points of a row with the equations of these: d u = the sum of g times the values of neighbours + d b.
type Points struct {
	D, B, Hold   []float64 // hold is the part of d that belongs to no neighbour, over d
	Along        []float64 // the g to the point before and, in the next place, to the one after
	Above, Below []float64 // the g to the points of other rows
	U            []float64 // the values, from the point before the first one to the one after the last one
	North, South []float64
}

// Residuals sets dst to d times the difference of b and hold times the value, plus g times the differences from
// neighbours. No weight of a neighbour is rounded, and couplings of two points cancel out.
func (p *Points) Residuals(dst []float64) {
	for i := residuals(dst, p); i < len(dst); i++ {
		dst[i] = p.residual(i)
	}
}

func (p *Points) residual(i int) float64 {
	u := p.U[i+1]
	r := float64(p.D[i] * (p.B[i] - float64(p.Hold[i]*u)))
	for _, n := range [...]struct{ g, u float64 }{{p.Along[i], p.U[i]}, {p.Along[i+1], p.U[i+2]},
		{p.Above[i], p.North[i]}, {p.Below[i], p.South[i]}} {
		r += float64(n.g * (n.u - u))
	}
	return r
}
