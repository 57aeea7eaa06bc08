package elementary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// check reports whether v is the correctly rounded value of the function called name at x (and y). v, x and y must be
// finite and not 0, and no special case. The value of a function that the reference has is rounded and compared with v.
// For an inverse function, the reference is evaluated at the midpoints between v and its neighbours.
func check(name string, x, y, v float64) bool {
	p := ref(refBits)
	bx, by := p.float(x), p.float(y)
	rounded := func(want *big.Float) bool { w, _ := want.Float64(); return w == v }
	switch name {
	case "sin", "cos", "tan":
		s, c := p.sinCos(bx)
		return rounded(map[string]*big.Float{"sin": s, "cos": c, "tan": p.of().Quo(s, c)}[name])
	case "exp":
		return rounded(p.exp(bx))
	case "sinh", "cosh", "tanh":
		if math.Abs(x) > 1000 {
			return name == "tanh" && v == math.Copysign(1, x)
		}
		p += ref(2 * max(0, -bx.MantExp(nil))) // for the difference of e^x and e^-x near 0
		a := p.exp(bx)
		b := p.of().Quo(p.float(1), a)
		s, c := p.of().Sub(a, b), p.of().Add(a, b)
		tanh := p.of().Quo(s, c)
		return rounded(map[string]*big.Float{"sinh": p.half(s, 1), "cosh": p.half(c, 1), "tanh": tanh}[name])
	case "log":
		return nearest(v, func(m *big.Float) int { return p.exp(m).Cmp(bx) })
	case "log10":
		return nearest(v, func(m *big.Float) int { return p.exp(p.of().Mul(m, p.log(p.float(10)))).Cmp(bx) })
	case "pow":
		return rounded(p.exp(p.of().Mul(by, p.log(bx))))
	case "asin":
		return nearest(v, func(m *big.Float) int {
			if quarter := p.half(p.pi(), 1); p.of().Abs(m).Cmp(quarter) > 0 {
				return m.Sign() // outside the range of the arc sine
			}
			s, _ := p.sinCos(m)
			return s.Cmp(bx)
		})
	case "acos":
		return nearest(v, func(m *big.Float) int {
			if m.Cmp(p.pi()) > 0 {
				return 1
			}
			_, c := p.sinCos(m)
			return bx.Cmp(c)
		})
	case "atan", "atan2":
		if bx, by = by, bx; name == "atan" {
			bx = p.float(1)
		}
		p += ref(abs(bx.MantExp(nil) - by.MantExp(nil)))
		return nearest(v, func(m *big.Float) int { // the sign of the angle from (x, y) to m
			s, c := p.sinCos(m)
			return s.Mul(s, bx).Cmp(c.Mul(c, by))
		})
	case "cbrt":
		return nearest(v, func(m *big.Float) int {
			cube := new(big.Float).SetPrec(200).Mul(m, m)
			return cube.Mul(cube, m).Cmp(bx)
		})
	case "hypot":
		exact := func(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(4400).Mul(a, b) }
		sum := exact(bx, bx)
		sum.Add(sum, exact(by, by))
		return nearest(v, func(m *big.Float) int { return exact(m, m).Cmp(sum) })
	}
	panic(name)
}

func abs(n int) int { return max(n, -n) }

// ordinary reports whether check applies to the arguments args with value v.
func ordinary(v float64, args ...float64) bool {
	for _, a := range append(args, v) {
		if math.IsInf(a, 0) || math.IsNaN(a) || a == 0 {
			return false
		}
	}
	return true
}

// Every value is the true one, rounded to nearest even.
func TestCorrectlyRounded(t *testing.T) {
	for name, f := range univariate {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 2))
			args := specials()
			for range 800 {
				args = append(args, random(rng))
			}
			checked := 0
			for _, x := range args {
				v := f(x)
				if !ordinary(v, x) {
					continue
				}
				checked++
				if !check(name, x, 0, v) {
					t.Errorf("%s(%x) = %x, which is not the nearest", name, x, v)
				}
			}
			if checked < 300 {
				t.Errorf("%d arguments were checked", checked)
			}
		})
	}
	for name, f := range bivariate {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, 4))
			args := specials()
			checked := 0
			for range 2000 {
				x, y := random(rng), random(rng)
				if rng.IntN(3) == 0 {
					x = args[rng.IntN(len(args))]
				}
				if rng.IntN(3) == 0 {
					y = args[rng.IntN(len(args))]
				}
				if name == "pow" {
					x = math.Abs(x)
				}
				v := f(x, y)
				if !ordinary(v, x, y) {
					continue
				}
				checked++
				if !check(name, x, y, v) {
					t.Errorf("%s(%x, %x) = %x, which is not the nearest", name, x, y, v)
				}
			}
			if checked < 300 {
				t.Errorf("%d pairs of arguments were checked", checked)
			}
		})
	}
}

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
		half := float64(k) / 128 // between two entries of a table, or one of them
		list = append(list, half, math.Nextafter(half, 0), math.Nextafter(half, 1))
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

// Where a quick pair leaves the rounding open, the next one decides it right.
func TestQuickPairsThatDecideNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	open := func(p pair) bool { _, certain := p.rounded(0, errQuick); return !certain }
	expect := func(name string, x, y, v float64) {
		if t.Helper(); !check(name, x, y, v) {
			t.Errorf("%s(%x, %x) = %x, which is not the nearest", name, x, y, v)
		}
	}
	for sines, angles := 0, 0; sines < 40 || angles < 40; {
		x, y := rng.NormFloat64()*8, rng.NormFloat64()*8
		r, _ := reduce(math.Abs(x))
		if r.hi < 0 {
			r = r.neg()
		}
		if a := turnOf(r); open(a.sine()) || open(a.cosine()) {
			sines++
			expect("sin", x, 0, Sin(x))
			expect("cos", x, 0, Cos(x))
		}
		m, n := min(math.Abs(x), math.Abs(y)), max(math.Abs(x), math.Abs(y))
		at := math.Atan(m / n)
		a := turnOf(pair{at, 0})
		if p := atanPair(at, a.sine(), a.cosine(), m, n); open(p) || open(halfPi.sub(p)) || open(halfPi.add(p)) {
			angles++
			expect("atan2", y, x, Atan2(y, x))
			expect("atan2", x, y, Atan2(x, y))
			expect("atan2", y, -x, Atan2(y, -x))
			expect("atan2", -x, y, Atan2(-x, y))
		}
	}
}
