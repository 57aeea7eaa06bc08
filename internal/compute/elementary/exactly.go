package elementary

import (
	"math"
	"math/big"
)

// working is a working precision in bits. The results of its methods have a relative error below 2^(guard-working).
type working uint

// guard is the number of bits that the rounding errors of a computation may cost.
const guard = 64

// exactly returns the float64 nearest to the value that f computes in increasing precision.
func exactly(f func(w working) *big.Float) float64 {
	for bits := 160; ; bits *= 2 {
		w := working(bits + guard)
		v := f(w)
		margin := w.scaled(v, -bits)
		low, _ := w.sub(v, margin).Float64()
		high, _ := w.add(v, margin).Float64()
		if low == high {
			return low
		}
	}
}

func (w working) new() *big.Float                       { return new(big.Float).SetPrec(uint(w)) }
func (w working) float(v float64) *big.Float            { return w.new().SetFloat64(v) }
func (w working) add(a, b *big.Float) *big.Float        { return w.new().Add(a, b) }
func (w working) sub(a, b *big.Float) *big.Float        { return w.new().Sub(a, b) }
func (w working) mul(a, b *big.Float) *big.Float        { return w.new().Mul(a, b) }
func (w working) div(a, b *big.Float) *big.Float        { return w.new().Quo(a, b) }
func (w working) sqrt(a *big.Float) *big.Float          { return w.new().Sqrt(a) }
func (w working) scaled(a *big.Float, n int) *big.Float { return w.new().SetMantExp(a, n) }

// arcs returns the sum of c atan(1/n), or of c atanh(1/n), over the pairs (c, n) in terms.
func (w working) arcs(hyperbolic bool, terms ...int64) *big.Float {
	total := new(big.Int)
	for i := 0; i < len(terms); i += 2 {
		c, n := terms[i], big.NewInt(terms[i+1])
		power := new(big.Int).Lsh(big.NewInt(c), uint(w)+guard)
		power.Quo(power, n)
		square := new(big.Int).Mul(n, n)
		for k := int64(1); power.Sign() != 0; k += 2 {
			term := new(big.Int).Quo(power, big.NewInt(k))
			if k&2 != 0 && !hyperbolic {
				term.Neg(term)
			}
			total.Add(total, term)
			power.Quo(power, square)
		}
	}
	return w.scaled(w.new().SetInt(total), -int(w)-guard)
}

// pi computes Machin's formula, 16 atan(1/5) - 4 atan(1/239).
func (w working) pi() *big.Float { return w.arcs(false, 16, 5, -4, 239) }

func (w working) ln2() *big.Float { return w.arcs(true, 18, 26, -2, 4801, 8, 8749) }

// round returns the integer nearest to a.
func round(a *big.Float) *big.Int {
	half := big.NewFloat(0.5)
	if a.Signbit() {
		half.Neg(half)
	}
	n, _ := new(big.Float).SetPrec(a.Prec()+1).Add(a, half).Int(nil)
	return n
}

// series returns a sum of terms, the first of which is 1. Each further term is the previous one times x, divided by the
// following step integers; the first of these integers is next.
func (w working) series(x *big.Float, next, step int64) *big.Float {
	sum, term := w.float(1), w.float(1)
	for term.Sign() != 0 && term.MantExp(nil) > -int(w) {
		term.Mul(term, x)
		for range step {
			term.Quo(term, new(big.Float).SetInt64(next))
			next++
		}
		sum.Add(sum, term)
	}
	return sum
}

// exp returns e^x for |x| < 2^11.
func (w working) exp(x *big.Float) *big.Float {
	const halvings = 16
	more := w + guard
	k := round(more.div(x, more.ln2()))
	r := more.sub(x, more.mul(more.new().SetInt(k), more.ln2()))
	e := more.series(more.scaled(r, -halvings), 1, 1)
	for range halvings {
		e.Mul(e, e)
	}
	return w.scaled(e, int(k.Int64()))
}

// sinh, cosh and tanh lose the leading bits that e^x and e^-x share: fewer than 60 for x > 2^-29.
func (w working) sinh(x *big.Float) *big.Float {
	e := (w + guard).exp(x)
	return w.scaled((w+guard).sub(e, (w+guard).div(w.float(1), e)), -1)
}

func (w working) cosh(x *big.Float) *big.Float {
	e := w.exp(x)
	return w.scaled(w.add(e, w.div(w.float(1), e)), -1)
}

func (w working) tanh(x *big.Float) *big.Float { return w.div(w.sinh(x), w.cosh(x)) }

// log returns ln x for x > 0. It iterates y + 2 (x - e^y) / (x + e^y), which triples the number of correct digits. Near
// x = 1, x - e^y loses about -log2 |y| bits.
func (w working) log(x *big.Float) *big.Float {
	more := w + 2*guard
	m := more.new()
	k := x.MantExp(m)
	if m.Cmp(big.NewFloat(0.75)) < 0 {
		m.SetMantExp(m, 1)
		k--
	}
	near, _ := m.Float64()
	y := more.float(math.Log(near))
	for bits := working(40); bits < more; bits *= 3 {
		e := more.exp(y)
		y = more.add(y, more.scaled(more.div(more.sub(m, e), more.add(m, e)), 1))
	}
	return w.add(y, more.mul(more.ln2(), more.new().SetInt64(int64(k))))
}

func (w working) log10(x *big.Float) *big.Float { return w.div(w.log(x), w.log(w.float(10))) }

// sinCos returns the sine and the cosine of x. The reduction by multiples of pi/2 loses as many bits as x has before
// the binary point, and fewer than 64 more.
func (w working) sinCos(x *big.Float) (s, c *big.Float) {
	more := w + guard + working(max(0, x.MantExp(nil)))
	half := more.scaled(more.pi(), -1)
	k := round(more.div(x, half))
	r := more.sub(x, more.mul(half, more.new().SetInt(k)))
	square := w.mul(r, r)
	square.Neg(square)
	s = w.mul(r, w.series(square, 2, 2))
	c = w.series(square, 1, 2)
	if k.Bit(0) != 0 {
		s, c = c, s.Neg(s)
	}
	if k.Bit(1) != 0 {
		s.Neg(s)
		c.Neg(c)
	}
	return s, c
}

// angle returns the angle of the point (x, y), y > 0. It repeatedly corrects an approximate angle by the tangent of the
// remaining angle, which is small.
func (w working) angle(y, x *big.Float) *big.Float {
	ny, nx := new(big.Float), new(big.Float)
	ey, ex := y.MantExp(ny), x.MantExp(nx)
	if ey < ex-100 && x.Sign() > 0 { // t - t^3/3 + ..., with t = y/x
		t := w.div(y, x)
		cube := w.mul(t, w.mul(t, t))
		return w.sub(t, w.div(cube, w.float(3)))
	}
	e := max(ey, ex)
	y, x = w.scaled(y, -e), w.scaled(x, -e)
	fy, _ := y.Float64()
	fx, _ := x.Float64()
	a := w.float(math.Atan2(fy, fx))
	for bits := working(40); bits < w; bits *= 3 {
		s, c := w.sinCos(a)
		across := w.sub(w.mul(y, c), w.mul(x, s))
		along := w.add(w.mul(x, c), w.mul(y, s))
		a = w.add(a, w.div(across, along))
	}
	return a
}

func (w working) asin(x *big.Float) *big.Float { return w.angle(x, w.leg(x)) }
func (w working) acos(x *big.Float) *big.Float { return w.angle(w.leg(x), x) }

// leg returns sqrt(1 - x^2).
func (w working) leg(x *big.Float) *big.Float {
	one := w.float(1)
	return w.sqrt(w.mul(w.sub(one, x), w.add(one, x)))
}

// cbrt returns the cube root of x > 0 by Newton's method.
func (w working) cbrt(x *big.Float) *big.Float {
	m := w.new()
	e := x.MantExp(m)
	for e%3 != 0 {
		m.SetMantExp(m, 1)
		e--
	}
	near, _ := m.Float64()
	y := w.float(math.Cbrt(near))
	for bits := working(40); bits < w; bits *= 2 {
		rest := w.sub(m, w.mul(y, w.mul(y, y)))
		y = w.add(y, w.div(rest, w.mul(w.float(3), w.mul(y, y))))
	}
	return w.scaled(y, e/3)
}
