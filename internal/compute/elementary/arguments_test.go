package elementary

import (
	"math"
	"math/rand/v2"
)

// univariate has the functions of one argument, by name.
var univariate = map[string]func(float64) float64{
	"sin": Sin, "cos": Cos, "tan": Tan, "asin": Asin, "acos": Acos, "atan": Atan,
	"sinh": Sinh, "cosh": Cosh, "tanh": Tanh, "exp": Exp, "log": Log, "log10": Log10, "cbrt": Cbrt,
}

// bivariate has the functions of two arguments.
var bivariate = map[string]func(a, b float64) float64{"atan2": Atan2, "pow": Pow, "hypot": Hypot}

// specials returns arguments near the limits of ranges in which functions behave differently.
func specials() []float64 {
	list := []float64{
		0, 5e-324, 1e-323, 0x1p-1022, 0x1.fffffffffffffp-1023, 1e-300, 0x1p-60, 0x1p-54, 0x1p-53, 0x1p-28,
		0x1p-27, 0x1p-26, 0.1, 0.17, 0.25, 1.0 / 3, 0.34, 0.5, 0.70710678118654757, 1, 0x1.fffffffffffffp-1,
		0x1.0000000000001p0, 1.5, 2, 3, math.E, 10, 22, 40, 100, 709.78271289338397, 709.78271289338409,
		710.47586007394386, 710.4758600739439, 708.39641853226408, 745.13321910194122, 745.1332191019411,
		744.44007192138122, 746, 1000, 1 << 20, 1 << 53, 1e15, 1e22, 1e100, 1e300, 6381956970095103 * 0x1p797,
		math.MaxFloat64,
		math.Inf(1), math.NaN(),
	}
	for k := 1; k < 40; k++ {
		x := float64(k) * (math.Pi / 4)
		list = append(list, x, math.Nextafter(x, 0), math.Nextafter(x, 1e9), math.Ldexp(math.Pi, 5*k))
	}
	for k := range 23 {
		list = append(list, math.Pow10(k), math.Pow10(-k))
	}
	for _, x := range list {
		list = append(list, -x)
	}
	return list
}

// random returns a random number: of any magnitude, of a common magnitude, near 1, or with few bits.
func random(rng *rand.Rand) float64 {
	switch rng.IntN(8) {
	case 0:
		return math.Float64frombits(rng.Uint64())
	case 1:
		return 1 + rng.NormFloat64()*math.Ldexp(1, -rng.IntN(50))
	case 2:
		return math.Ldexp(float64(rng.IntN(1<<20)-1<<19), rng.IntN(40)-30)
	case 3:
		return rng.NormFloat64() * 300
	case 4:
		return rng.Float64() * math.Pi
	default:
		return rng.NormFloat64() * math.Ldexp(1, rng.IntN(16)-12)
	}
}
