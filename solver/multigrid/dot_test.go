package multigrid

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"jacobi/solver"
)

// TestDot compares sums of terms of all sizes and both signs, added in several parts that travel as solver.Sum, with
// sums of unlimited precision.
func TestDot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, e := range []solver.Magnitude{0, 40, -300, 400} {
		for range 200 {
			var parts [3]Dot
			exact := new(big.Float).SetPrec(2000)
			for i := range 1 + r.IntN(40) {
				v := math.Ldexp(2*r.Float64()-1, 2*int(e)+r.IntN(280)-180)
				parts[i%3].Add(v, e)
				exact.Add(exact, big.NewFloat(v))
			}
			var sums [DotSums]solver.Sum
			for _, p := range parts {
				for i, s := range p.sums() {
					sums[i].Merge(s)
				}
			}
			want, _ := exact.Float64()
			if got := dotOf(sums[:]).Float(e); got != want {
				t.Fatalf("magnitude %d: %v, want %v", e, got, want)
			}
		}
	}
}

// Terms that are added by exponent give the sum that they give one by one: of all sizes and both signs, cut ones, zeros
// and ones that are bad.
func TestDotTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, e := range []solver.Magnitude{0, 40, -300, 400, -440, 500} {
		terms := NewDotTerms(e)
		for round := range 100 {
			var want Dot
			for range 1 + r.IntN(60) {
				v := math.Ldexp(2*r.Float64()-1, 2*int(e)+r.IntN(400)-300)
				switch r.IntN(20) {
				case 0:
					v = math.Copysign(0, v)
				case 1:
					v = math.Ldexp(v, -1100) // denormal for some
				}
				if round == 90 {
					v = []float64{math.Inf(1), math.NaN(), -math.MaxFloat64, v}[r.IntN(4)]
				}
				want.Add(v, e)
				terms.Add(v)
			}
			if got := terms.Total(); got != want {
				t.Fatalf("magnitude %d: %v, want %v", e, got, want)
			}
		}
	}
}

// Numbers of both signs, at all places, add up as those of unlimited precision do.
func TestDotAddScaled(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var d Dot
		exact := new(big.Int)
		for range 1 + r.IntN(40) {
			n, shift := int64(r.Uint64())>>r.IntN(64), r.IntN(300)
			d.AddScaled(n, shift)
			exact.Add(exact, new(big.Int).Lsh(big.NewInt(n), uint(shift)))
		}
		f := new(big.Float).SetInt(exact)
		want, _ := f.SetMantExp(f, -DotUnit).Float64()
		if got := d.Float(0); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	var d Dot
	d.AddScaled(1, 383) // the sign of the whole
	if got, want := d.Float(0), math.Ldexp(-1, 383-DotUnit); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	d.Spoil()
	if got := d.Float(0); !math.IsNaN(got) {
		t.Errorf("%v, want NaN", got)
	}
}

// Terms are cut toward zero, and terms that no run has make the sum NaN.
func TestDotLimits(t *testing.T) {
	for _, c := range []struct{ term, want float64 }{
		{0, 0}, {math.Copysign(0, -1), 0},
		{0x1.8p-234, 0x1p-234}, {-0x1.8p-234, -0x1p-234}, {0x1p-235, 0}, {-0x1p-300, 0}, {0x1p-1074, 0},
		{0x1.fffffffffffffp99, 0x1.fffffffffffffp99}, {-0x1.fffffffffffffp99, -0x1.fffffffffffffp99},
		{0x1p100, math.NaN()}, {-0x1p100, math.NaN()}, {math.Inf(-1), math.NaN()}, {math.NaN(), math.NaN()},
	} {
		var d Dot
		d.Add(c.term, 0)
		if got := d.Float(0); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%g became %g, want %g", c.term, got, c.want)
		}
	}
}

// TestCoefficients checks the minimum in a plane, along a line where the directions agree, and the plain cycle where
// rounding leaves no curvature.
func TestCoefficients(t *testing.T) {
	for _, c := range []struct {
		products [5]float64
		a, b     float64
	}{
		{[5]float64{-2, -1, -3, 4, 5}, (3.0*4 - 1*5) / 5, (2.0*5 - 1*4) / 5},
		{[5]float64{-2, 0, 0, 4, 0}, 2, 0},
		{[5]float64{-2, -2, -2, 4, 4}, 2, 0},
		{[5]float64{0, 0, -3, 0, 5}, 1, 0},
		{[5]float64{1e-30, 0, -3, 0, 5}, 1, 0},
	} {
		var p Products
		for i, v := range c.products {
			p[i].Add(v, 0)
		}
		if a, b, err := p.coefficients(); a != c.a || b != c.b || err != nil {
			t.Errorf("%v: %g, %g (%v), want %g, %g", c.products, a, b, err, c.a, c.b)
		}
	}
	var bad Products
	bad[2].Add(math.NaN(), 0)
	const want = "a scalar product is NaN: the field has left the range of its type or was damaged"
	if _, _, err := bad.coefficients(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
