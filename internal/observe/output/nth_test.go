package output

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// nth finds what sorting finds, whatever the values are.
func TestNth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, value := range map[string]func() float64{
		"any":          func() float64 { return math.Ldexp(random.Float64()-0.5, random.IntN(2000)-1000) },
		"float32":      func() float64 { return float64(random.Float32()) - 0.5 },
		"near 1":       func() float64 { return 1 + float64(random.IntN(1000))*0x1p-52 },
		"denormal":     func() float64 { return float64(random.IntN(9)-4) * math.SmallestNonzeroFloat64 },
		"few":          func() float64 { return float64(random.IntN(3) - 1) },
		"not finite":   func() float64 { return []float64{math.Inf(-1), -1, 0, math.Inf(1)}[random.IntN(4)] },
		"all the same": func() float64 { return -7 },
	} {
		for _, n := range []int{1, 2, 3, 100, 4321} {
			values := make([]float64, n)
			for i := range values {
				values[i] = value()
			}
			before, sorted := slices.Clone(values), slices.Sorted(slices.Values(values))
			for i := 0; i < n; i += 1 + n/50 {
				if got := nth(values, i); got != sorted[i] {
					t.Fatalf("%s: place %d of %d has %g, want %g", name, i, n, got, sorted[i])
				}
			}
			if !slices.Equal(values, before) {
				t.Errorf("%s: the values are changed", name)
			}
		}
	}
}
