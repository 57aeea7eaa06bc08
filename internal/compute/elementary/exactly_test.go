package elementary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// fallbacks has the computations that functions use if their pair does not decide the rounding.
var fallbacks = map[string]func(w working, x *big.Float) *big.Float{
	"sin":  func(w working, x *big.Float) *big.Float { s, _ := w.sinCos(x); return s },
	"cos":  func(w working, x *big.Float) *big.Float { _, c := w.sinCos(x); return c },
	"tan":  func(w working, x *big.Float) *big.Float { s, c := w.sinCos(x); return w.div(s, c) },
	"asin": working.asin, "acos": working.acos, "sinh": working.sinh, "cosh": working.cosh, "tanh": working.tanh,
	"atan": func(w working, x *big.Float) *big.Float { return w.angle(x, w.float(1)) },
	"exp":  working.exp, "log": working.log, "log10": working.log10, "cbrt": working.cbrt,
}

// Functions need the fallback so rarely that it is tested separately, at arguments for which they would use it.
func TestFallback(t *testing.T) {
	for name, f := range univariate {
		rng := rand.New(rand.NewPCG(5, 6))
		tried := 0
		for _, x := range specials() {
			if rng.IntN(2) == 0 {
				x = math.Abs(random(rng))
			}
			v := f(x)
			large := x > 1e10 && name != "sin" || name[len(name)-1] == 'h' && x > 20
			if x < 0x1p-27 || large || math.Abs(v) == 1 || !ordinary(v, x) {
				continue
			}
			tried++
			if got := exactly(func(w working) *big.Float { return fallbacks[name](w, w.float(x)) }); got != v {
				t.Errorf("%s(%x): the fallback gives %x, the function %x", name, x, got, v)
			}
		}
		if tried < 40 {
			t.Errorf("%s: %d arguments were tried", name, tried)
		}
	}
}

// The relative errors of pairs are below a quarter of errPair, and those of quick ones below a quarter of errQuick.
func TestPairs(t *testing.T) {
	const w = working(300)
	rng := rand.New(rand.NewPCG(7, 8))
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64()*math.Ldexp(1, -rng.IntN(3)) }
	for name, f := range map[string]func() (pair, *big.Float){
		"exp": func() (pair, *big.Float) {
			x := between(-700, 700)
			p, k := expPair(pair{x, 0})
			return p, w.scaled(w.exp(w.float(x)), -k)
		},
		"expm1": func() (pair, *big.Float) {
			x := between(-0.347, 0.347)
			return expm1(pair{x, 0}), w.sub(w.exp(w.float(x)), w.float(1))
		},
		"sinh": func() (pair, *big.Float) {
			x := between(0x1p-20, 50)
			p, k := sinhPair(x)
			return p, w.scaled(w.sinh(w.float(x)), 1-k)
		},
		"log": func() (pair, *big.Float) {
			x := math.Exp(between(-600, 600))
			return logPair(x), w.log(w.float(x))
		},
		"log near 1": func() (pair, *big.Float) {
			x := between(0.7, 1.42)
			return logPair(x), w.log(w.float(x))
		},
		"sin": func() (pair, *big.Float) {
			x := between(0, math.Pi/4)
			s, _ := w.sinCos(w.float(x))
			return sinPair(pair{x, 0}), s
		},
		"cos": func() (pair, *big.Float) {
			x := between(0, math.Pi/4)
			_, c := w.sinCos(w.float(x))
			return cosPair(pair{x, 0}), c
		},
		"asin": func() (pair, *big.Float) { x := between(0, 0.71); return asinPair(pair{x, 0}), w.asin(w.float(x)) },
		"acos": func() (pair, *big.Float) { x := between(0.5, 1); return acosNear1(x), w.acos(w.float(x)) },
		"atan": func() (pair, *big.Float) {
			n := between(0.5, 1)
			m := n * between(0, 1)
			y := math.Atan(m / n)
			return atanPair(y, sinPair(pair{y, 0}), cosPair(pair{y, 0}), m, n), w.angle(w.float(m), w.float(n))
		},
		"reduce": func() (pair, *big.Float) {
			x := between(0.79, 1023)
			quarter := w.scaled(w.pi(), -1)
			r, _ := reduce(x)
			return r, w.sub(w.float(x), w.mul(w.float(math.Round(x/(math.Pi/2))), quarter))
		},
		"quick sin": func() (pair, *big.Float) {
			x := between(0, 0.79)
			s, _ := w.sinCos(w.float(x))
			return turnOf(pair{x, 0}).sine(), s
		},
		"quick cos": func() (pair, *big.Float) {
			x := between(0, 0.79)
			_, c := w.sinCos(w.float(x))
			return turnOf(pair{x, 0}).cosine(), c
		},
		"quick sin of a pair": func() (pair, *big.Float) {
			r, _ := reduce(between(0.79, 1023))
			if r.hi < 0 {
				r = r.neg()
			}
			s, _ := w.sinCos(w.add(w.float(r.hi), w.float(r.lo)))
			return turnOf(r).sine(), s
		},
		"quick atan": func() (pair, *big.Float) {
			n := between(0.5, 1)
			m := n * between(0, 1)
			y := math.Atan(m / n)
			t := turnOf(pair{y, 0})
			return atanPair(y, t.sine(), t.cosine(), m, n), w.angle(w.float(m), w.float(n))
		},
	} {
		worst := 0.0
		for range 500 {
			p, want := f()
			if want.Sign() == 0 {
				continue
			}
			got := w.add(w.float(p.hi), w.float(p.lo))
			relative, _ := w.div(w.sub(got, want), want).Float64()
			worst = max(worst, math.Abs(relative))
		}
		t.Logf("%s: at most 2^%.1f", name, math.Log2(worst))
		bound := errPair
		if strings.HasPrefix(name, "quick") {
			bound = errQuick
		}
		if worst > bound/4 {
			t.Errorf("%s: a relative error of 2^%.1f", name, math.Log2(worst))
		}
	}
}

// A value midway between two float64s is rounded to the even one.
func TestTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	power := func(x, y float64, root, n int64) {
		t.Helper()
		exact := new(big.Int).Exp(big.NewInt(root), big.NewInt(n), nil)
		want, _ := new(big.Float).SetInt(exact).Float64()
		if got := Pow(x, y); got != want {
			t.Errorf("pow(%v, %v) = %x, want %x", x, y, got, want)
		}
	}
	for range 500 {
		o := float64(1<<17 + rng.IntN(1<<16)*2 + 1) // odd; the cube has 52 to 54 bits
		power(o, 3, int64(o), 3)
		power(o*o, 1.5, int64(o), 3)
		o = float64(11585 + 2*rng.IntN(200)) // odd; the fourth power has 54 or 55 bits
		power(o, 4, int64(o), 4)
		power(o*o*o*o, 0.75, int64(o), 3)
	}
	for n := range 54 {
		power(3, float64(n), 3, int64(n))
	}
	for k := range 1080 {
		if got, want := Pow(2, -float64(k)), math.Ldexp(1, -k); got != want {
			t.Errorf("2^-%d = %v", k, got)
		}
	}
	ties := 0
	for m := int64(1<<26 + 1<<25 + 1); ties < 200; m += 2 { // (m^2-n^2, 2mn, m^2+n^2), m odd and n a power of two
		n := int64(1) << (20 + m%5)
		x, y, h := m*m-n*n, 2*m*n, m*m+n*n
		if x >= 1<<53 {
			n = 1 << 26
			x, y, h = m*m-n*n, 2*m*n, m*m+n*n
		}
		if x >= 1<<53 || h < 1<<53 {
			continue
		}
		ties++
		want, _ := new(big.Float).SetInt64(h).Float64()
		if got := Hypot(float64(x), float64(y)); got != want {
			t.Errorf("hypot(%d, %d) = %.0f, want %.0f", x, y, got, want)
		}
	}
}

// Special cases give the results of package math.
func TestSpecialCases(t *testing.T) {
	same := func(a, b float64) bool {
		near := b != 0 && math.Abs(a-b) <= 1e-15*math.Abs(b)
		return near || math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
	}
	ends := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1}
	std := map[string]func(float64) float64{
		"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
		"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "exp": math.Exp, "log": math.Log, "log10": math.Log10,
		"cbrt": math.Cbrt,
	}
	std2 := map[string]func(a, b float64) float64{"pow": math.Pow, "atan2": math.Atan2, "hypot": math.Hypot}
	for name, f := range univariate {
		for _, x := range append(ends[:5:5], -2) {
			if got, want := f(x), std[name](x); !same(got, want) {
				t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
			}
		}
	}
	more := append(ends, 0.5, -0.5, 2, -2, 3, -3, 1e300, -1e300, 5e-324)
	for name, f := range bivariate {
		for _, x := range more {
			for _, y := range more {
				if got, want := f(x, y), std2[name](x, y); !same(got, want) {
					t.Errorf("%s(%v, %v) = %v, want %v", name, x, y, got, want)
				}
			}
		}
	}
}
