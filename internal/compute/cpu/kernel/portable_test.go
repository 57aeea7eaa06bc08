package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestFMA compares fma in float32 with exact arithmetic: at random values, where a sum rounded to float64 lies in the
// middle between two float32 values, and near the denormal numbers.
func TestFMA(t *testing.T) {
	exact := func(x, y, z float32) float32 {
		term := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
		product := new(big.Float).SetPrec(1000).Mul(term(x), term(y))
		sum, _ := product.Add(product, term(z)).Float32()
		return sum
	}
	check := func(x, y, z float32) {
		if got, want := FMA(x, y, z), exact(x, y, z); got != want {
			t.Errorf("FMA(%g, %g, %g) = %g, want %g", x, y, z, got, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	value := func(spread int) float32 {
		return float32(math.Ldexp(1+random.Float64(), random.IntN(2*spread)-spread))
	}
	for range 20000 {
		x, z := value(20), value(60)
		check(x, x, z)
		check(x, -value(20), z)
		tiny := value(3) * 0x1p-63
		check(tiny, tiny, smallest32)
		check(tiny, -tiny, smallest32)
		// z plus half an ulp of z, and plus a little more or less by an amount that float64 does not hold.
		z = float32(math.Ldexp(float64(1<<23+random.IntN(1<<23)), -23))
		half := float32(0x1p-12)
		check(half, half, z)
		check(half*(1+0x1p-23), half*(1-0x1p-23), z)
		check(half*(1+0x1p-22), half*(1-0x1p-22), -z)
	}
}
