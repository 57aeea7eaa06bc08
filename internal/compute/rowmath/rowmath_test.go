package rowmath

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// Rows of any length have the bits that single numbers have, also where some are 0.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	row := func(n int) []float64 {
		values := make([]float64, n)
		for i := range values {
			if r.IntN(4) > 0 {
				values[i] = math.Ldexp(r.Float64(), r.IntN(80)-40)
			}
		}
		return values
	}
	for n := range 20 {
		a, b, dst := row(n+2), row(n), make([]float64, n)
		p := Points{D: row(n), B: row(n), Hold: row(n), Along: row(n + 1), Above: row(n), Below: row(n), U: row(n + 2),
			North: row(n), South: row(n)}
		for _, c := range []struct {
			name string
			row  func()
			want func(i int) float64
		}{
			{"ratios", func() { Ratios(dst, a, b) }, func(i int) float64 { return Ratio(a[i], b[i]) }},
			{"means", func() { Means(dst, a, b) }, func(i int) float64 { return Mean(a[i], b[i]) }},
			{"scale", func() { Scale(dst, a, 3, 0.7, 1.1) },
				func(i int) float64 { return float64(float64(a[i]*3)*0.7) * 1.1 }},
			{"scale by five", func() { Scale(dst, a, 3, 0.7, 1.1, 7, 9) },
				func(i int) float64 { return float64(float64(float64(float64(a[i]*3)*0.7)*1.1)*7) * 9 }},
			{"centres", func() { Centres(dst, a, b, p.D) },
				func(i int) float64 { return (a[i] + a[i+1]) + (b[i] + p.D[i]) }},
			{"quotients", func() { Quotients(dst, a, 0.7) }, func(i int) float64 { return a[i] / 0.7 }},
			{"halves", func() { Quotients(dst, a, 2) }, func(i int) float64 { return a[i] / 2 }},
			{"shift", func() { Shift(dst, a, 0.3) }, func(i int) float64 { return a[i] + 0.3 }},
			{"count", func() { Count(dst, 1<<40+n, 0.7) }, func(i int) float64 { return float64(1<<40+n+i) / 0.7 }},
			{"residuals", func() { p.Residuals(dst) }, p.residual},
		} {
			c.row()
			for i, v := range dst {
				if want := c.want(i); math.Float64bits(v) != math.Float64bits(want) {
					t.Errorf("%s, %d of %d: %v, want %v", c.name, i, n, v, want)
				}
			}
		}
	}
}

// What is found in rows of any length is what is found in single numbers, also among NaN and infinities.
func TestFindings(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		a := make([]float64, r.IntN(14))
		within, least, zero, largest := len(a), math.Inf(1), false, 0.0
		for i := range a {
			a[i] = [...]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}[r.IntN(5)]
			if r.IntN(4) > 0 {
				a[i] = r.Float64() - 0.1
			}
			if within == len(a) && !(a[i] >= 0 && a[i] <= 0.8) {
				within = i
			}
			if zero = zero || a[i] == 0; a[i] > 0 {
				least = min(least, a[i])
			}
			if v := math.Abs(a[i]); v > largest {
				largest = v
			}
		}
		if got := Within(a, 0, 0.8); got != within {
			t.Errorf("%v: %d are within, want %d", a, got, within)
		}
		if got, found := Least(a); got != least || found != zero {
			t.Errorf("%v: least %v and zero %v, want %v and %v", a, got, found, least, zero)
		}
		if got := Largest(a); got != largest {
			t.Errorf("%v: largest %v, want %v", a, got, largest)
		}
	}
}

// Quotients have the bits of division for all numbers, four of which one group is made of.
func TestQuotients(t *testing.T) {
	numbers := []float64{1, 0.1, -1.0 / 3, math.Pi, 1e-120, 1e120, 0x1.fffffffffffffp0, 0x1.0000000000001p0, 0,
		math.Copysign(0, -1), 5e-324, 0x1.fffffffffffffp-1022, 1e-300, 1e300, math.MaxFloat64, math.Inf(1), math.NaN()}
	got := make([]float64, 4)
	for _, d := range []float64{1, 0x1p-22, 0x1p40, 3, 0.1, 1.0 / (300 * 300), -3, 0x1.8p-400, 0x1.8p-401, 0x1.8p399,
		0x1.8p400, 1e-130, 1e200, math.MaxFloat64} {
		for i, v := range numbers {
			for _, others := range []float64{1.1, v} {
				Quotients(got, []float64{v, others, others, 1.7}, d)
				if want := v / d; math.Float64bits(got[0]) != math.Float64bits(want) {
					t.Errorf("%v (number %d) over %v: %v, want %v", v, i, d, got[0], want)
				}
			}
		}
	}
}

// Quotients have the bits of division also where the exact ones lie next to the middle between two numbers: x of 54
// bits, which is odd, is such a middle, and a d^-1 2^53 is x - r/d for integers a and d of 53 bits.
func TestQuotientsNextToMiddles(t *testing.T) {
	rnd, tried := rand.New(rand.NewPCG(5, 6)), 0
	for range 100000 {
		d := 1<<52 | rnd.Uint64N(1<<52) | 1
		inverse := d // modulo 2^64, of which each step doubles the right bits
		for range 6 {
			inverse *= 2 - d*inverse
		}
		for _, r := range []int64{1, -1, 3, -3, 5, -5} {
			x := (uint64(r)*inverse)%(1<<53) + 1<<53
			high, low := bits.Mul64(x, d)
			low, borrow := bits.Sub64(low, uint64(r), 0)
			high -= borrow + uint64(r>>63) // the sign of r
			a := high<<11 | low>>53
			if a >= 1<<53 && a%2 == 1 {
				continue // a has 54 bits
			}
			got := make([]float64, 4)
			Quotients(got, []float64{float64(a), float64(a), float64(a), float64(a)}, float64(d))
			if want := float64(a) / float64(d); got[0] != want {
				t.Fatalf("%d over %d: %b, want %b", a, d, got[0], want)
			}
			tried++
		}
	}
	if tried < 100000 {
		t.Errorf("%d quotients were tried", tried)
	}
}
