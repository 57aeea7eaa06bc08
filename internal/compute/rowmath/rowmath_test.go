package rowmath

import (
	"math"
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

// Products with the inverse are quotients to the bit, also where these are subnormal or infinite.
func TestQuotients(t *testing.T) {
	values := []float64{0, 1, 0.1, 1.0 / 3, math.Pi, 5e-324, 0x1.fffffffffffffp-1022, 1e-300, 1e300, math.MaxFloat64,
		math.Copysign(0, -1), math.Inf(1), -1.0 / 3, 1e-120, 1e120, 0x1.fffffffffffffp0, 0x1.0000000000001p0}
	got := make([]float64, len(values))
	for _, d := range []float64{1, 0x1p-22, 0x1p40, 3, 0.1, 1.0 / (300 * 300), 1e-130, 1e200, math.MaxFloat64, -3} {
		Quotients(got, values, d)
		for i, v := range values {
			if want := v / d; math.Float64bits(got[i]) != math.Float64bits(want) {
				t.Errorf("%v over %v: %v, want %v", v, d, got[i], want)
			}
		}
	}
}

// Quotients are those of division also where they lie near the middle between two numbers: v is the one nearest to such
// a middle times d.
func TestQuotientsNearMiddles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	mantissa := func() float64 { return 1 + float64(r.Uint64N(1<<52))*0x1p-52 }
	values, got := make([]float64, 1000), make([]float64, 1000)
	for range 1000 {
		d := mantissa()
		if r.IntN(4) == 0 { // whose inverse is rounded most
			d = 2 - float64(1+r.IntN(1000))*0x1p-52
		}
		for i := range values {
			if q := mantissa(); i%2 == 0 {
				values[i] = math.FMA(q, d, float64(d*0x1p-53))
			} else {
				values[i] = mantissa()
			}
		}
		Quotients(got, values, d)
		for i, v := range values {
			if want := v / d; got[i] != want {
				t.Fatalf("%v over %v: %v, want %v", v, d, got[i], want)
			}
		}
	}
}
