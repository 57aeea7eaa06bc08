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
			{"centres", func() { Centres(dst, a, b, p.D) },
				func(i int) float64 { return (a[i] + a[i+1]) + (b[i] + p.D[i]) }},
			{"updates", func() { p.Updates(dst) }, p.update},
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
