package elementary

import (
	"math"
	"math/big"
)

// The reference uses math/big with other methods than the package: series without tables and constants, halved
// arguments, and pi from an arithmetic-geometric mean. refBits suffices for all tested arguments.
const refBits = 420

// ref is a precision in bits.
type ref uint

func (p ref) float(v float64) *big.Float          { return p.of().SetFloat64(v) }
func (p ref) of() *big.Float                      { return new(big.Float).SetPrec(uint(p)) }
func (p ref) half(a *big.Float, n int) *big.Float { return p.of().SetMantExp(a, -n) }

// exp halves x until it is small, sums the series, and squares.
func (p ref) exp(x *big.Float) *big.Float {
	p += 64
	n := max(0, x.MantExp(nil)+12)
	r := p.half(x, n)
	sum, term := p.float(1), p.float(1)
	for k := 1.0; term.Sign() != 0 && term.MantExp(nil) > -int(p); k++ {
		term.Mul(term, r)
		term.Quo(term, p.float(k))
		sum.Add(sum, term)
	}
	for range n {
		sum.Mul(sum, sum)
	}
	return sum
}

// pi computes the arithmetic-geometric mean of Gauss and Legendre.
func (p ref) pi() *big.Float {
	a, b, t := p.float(1), p.of().Sqrt(p.float(0.5)), p.float(0.25)
	for k := 0; 1<<k < int(p); k++ {
		mean := p.half(p.of().Add(a, b), 1)
		b = p.of().Sqrt(p.of().Mul(a, b))
		d := p.of().Sub(a, mean)
		t.Sub(t, p.half(d.Mul(d, d), -k))
		a = mean
	}
	sum := a.Add(a, b)
	return p.half(sum.Quo(sum.Mul(sum, sum), t), 2)
}

// sinCos subtracts whole turns, halves the rest six times, sums both series, and doubles the angle again.
func (p ref) sinCos(x *big.Float) (s, c *big.Float) {
	p += 64 + ref(max(0, x.MantExp(nil)))
	r := p.of().Set(x)
	if x.MantExp(nil) > 2 {
		turn := p.half(p.pi(), -1)
		n, _ := p.of().Quo(x, turn).Int(nil)
		r.Sub(r, turn.Mul(turn, p.of().SetInt(n)))
	}
	const halvings = 6
	r = p.half(r, halvings)
	s, c = p.float(0), p.float(0)
	term := p.float(1)
	for k := 0; term.Sign() != 0 && term.MantExp(nil) > r.MantExp(nil)-int(p); k++ {
		sum := c
		if k%2 == 1 {
			sum = s
		}
		if k%4 < 2 {
			sum.Add(sum, term)
		} else {
			sum.Sub(sum, term)
		}
		term.Mul(term, r)
		term.Quo(term, p.float(float64(k+1)))
	}
	for range halvings {
		square := p.of().Mul(s, s)
		s.Mul(s, c)
		s = p.half(s, -1)
		c = p.of().Sub(p.float(1), p.half(square, -1))
	}
	return s, c
}

// log solves e^y = x by Newton's method, which starts from some 40 correct bits and doubles them in each step.
func (p ref) log(x *big.Float) *big.Float {
	m := new(big.Float)
	exp := x.MantExp(m)
	near, _ := m.Float64()
	y := p.float(math.Log(near) + float64(exp)*math.Ln2) // math.Log is wrong for denormal numbers on amd64
	for bits := 30; bits < int(p); bits *= 2 {
		e := p.exp(y)
		d := p.of().Sub(x, e)
		y.Add(y, d.Quo(d, e))
	}
	return y
}

// nearest reports whether v is the float64 nearest to a value. compare(m) is negative, 0 or positive if m, a number of
// up to 54 bits, is below, equal to or above the value. A value midway between two float64s goes to the even one.
func nearest(v float64, compare func(m *big.Float) int) bool {
	middle := func(other float64) *big.Float {
		if math.IsInf(other, 0) { // replaced by the number that would follow the largest one
			other = math.Copysign(math.MaxFloat64, other)
			m := new(big.Float).SetPrec(60).SetMantExp(big.NewFloat(math.Copysign(1, other)), 1024)
			m.Add(m, big.NewFloat(other))
			return m.SetMantExp(m, -1)
		}
		m := new(big.Float).SetPrec(60).Add(big.NewFloat(v), big.NewFloat(other))
		return m.SetMantExp(m, -1)
	}
	even := math.Float64bits(v)&1 == 0
	low, high := compare(middle(math.Nextafter(v, math.Inf(-1)))), compare(middle(math.Nextafter(v, math.Inf(1))))
	return (low < 0 || low == 0 && even) && (high > 0 || high == 0 && even)
}
