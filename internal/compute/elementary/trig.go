package elementary

import (
	"math"
	"math/big"
	"math/bits"
)

// halfPi is pi/2.
var halfPi = pair{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}

// twoOverPi holds 64 zero bits and then the bits of 2/pi, most significant first.
var twoOverPi = [...]uint64{
	0,
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
}

// reduce returns r and the low two bits of k with x = r + k pi/2 and |r| <= pi/4, for a finite x >= 0.
//
// With x = m 2^e and an integer m, x 2/pi is m times a window of the bits of 2/pi: bits that only add multiples of 4
// are left out (Payne and Hanek, 1983). The window has 256 bits and at most 62 cancel, so more bits are correct than a
// pair holds.
func reduce(x float64) (r pair, k uint64) {
	if x <= math.Pi/4 {
		return pair{x, 0}, 0
	}
	if x < 1024 {
		n := math.Floor(float64(x*(2/math.Pi)) + 0.5)
		// The difference is exact: it is a multiple of 2^-53, and below 1. The bits that halfPi lacks are below 2^-98.
		if t := math.FMA(-n, halfPi.hi, x); math.Abs(t) > 0x1p-20 {
			p := twoProduct(-n, halfPi.lo)
			r = quickTwoSum(t, p.hi)
			return quickTwoSum(r.hi, r.lo+p.lo), uint64(n) & 3
		}
	}
	b := math.Float64bits(x)
	m := b&(1<<52-1) | 1<<52
	skip := int(b>>52) - 1075 - 2 + 64
	word, shift := skip/64, uint(skip%64)
	// f = m * window mod 2^256; f / 2^254 = x 2/pi mod 4.
	var f [4]uint64 // most significant first
	var carry uint64
	for i := 3; i >= 0; i-- {
		w := twoOverPi[word+i]<<shift | twoOverPi[word+i+1]>>(64-shift)
		hi, lo := bits.Mul64(m, w)
		var c uint64
		f[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	k = f[0] >> 62
	for i := range 3 {
		f[i] = f[i]<<2 | f[i+1]>>62
	}
	f[3] <<= 2
	negative := f[0]>>63 != 0 // more than half: count from the next multiple
	if negative {
		k++
		c := uint64(1)
		for i := 3; i >= 0; i-- {
			f[i], c = bits.Add64(^f[i], 0, c)
		}
	}
	r = fraction(f).mul(halfPi)
	if negative {
		r = r.neg()
	}
	return r, k & 3
}

// fraction returns f / 2^256.
func fraction(f [4]uint64) pair {
	word := 0
	for word < 2 && f[word] == 0 {
		word++
	}
	shift := uint(bits.LeadingZeros64(f[word]))
	var next uint64
	if word+2 < len(f) {
		next = f[word+2]
	}
	high := f[word]<<shift | f[word+1]>>(64-shift)
	low := f[word+1]<<shift | next>>(64-shift)
	p := quickTwoSum(float64(high>>11), float64(float64(high&(1<<11-1)<<42|low>>22)*0x1p-53))
	return p.scaled(-53 - 64*word - int(shift))
}

// sinPair returns the sine of r, |r| < 0.79: r - r^3/3! + ... up to r^23/23!. The omitted terms are below 2^-90 of the
// sum. The terms from r^11 on are 2^-28 of the sum, so float64 suffices for them.
func sinPair(r pair) pair {
	rr := r.mul(r)
	x := rr.hi
	q := math.FMA(-1.0/25852016738884976640000, x, 1.0/51090942171709440000)
	q = math.FMA(q, x, -1.0/121645100408832000)
	q = math.FMA(q, x, 1.0/355687428096000)
	q = math.FMA(q, x, -1.0/1307674368000)
	q = math.FMA(q, x, 1.0/6227020800)
	q = math.FMA(q, x, -1.0/39916800)
	s := pair{q, 0}.horner(rr, reciprocal9).horner(rr, reciprocal7.neg())
	s = s.horner(rr, reciprocal5).horner(rr, reciprocal3.neg())
	s = s.horner(rr, pair{1, 0})
	return s.mul(r)
}

// cosPair returns the cosine of r, |r| < 0.79: 1 - r^2/2! + ... - r^22/22!. The omitted terms are below 2^-86. The
// terms from r^10 on are 2^-25 of the sum, so float64 suffices for them.
func cosPair(r pair) pair {
	rr := r.mul(r)
	x := rr.hi
	q := math.FMA(-1.0/1124000727777607680000, x, 1.0/2432902008176640000)
	q = math.FMA(q, x, -1.0/6402373705728000)
	q = math.FMA(q, x, 1.0/20922789888000)
	q = math.FMA(q, x, -1.0/87178291200)
	q = math.FMA(q, x, 1.0/479001600)
	q = math.FMA(q, x, -1.0/3628800)
	s := pair{q, 0}.horner(rr, reciprocal8).horner(rr, reciprocal6.neg())
	s = s.horner(rr, reciprocal4).horner(rr, pair{-0.5, 0})
	s = s.horner(rr, pair{1, 0})
	return quickTwoSum(s.hi, s.lo)
}

// Sin returns the sine of x.
func Sin(x float64) float64 {
	a := math.Abs(x)
	if !(a >= 0x1p-27) { // x - x^3/6 + ... rounds to x
		return x
	}
	if math.IsInf(x, 0) {
		return math.NaN()
	}
	v := sineAfter(a, 0)
	if x < 0 {
		return -v
	}
	return v
}

// Cos returns the cosine of x.
func Cos(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.NaN()
	}
	if math.Abs(x) < 0x1p-27 {
		return 1
	}
	return sineAfter(math.Abs(x), 1)
}

// sineAfter returns the sine of a + quarter * pi/2 for a >= 2^-27.
func sineAfter(a float64, quarter uint64) float64 {
	r, k := reduce(a)
	k += quarter
	even, sign := k&1 == 0, 1-float64(k&2)
	if r.hi < 0 {
		r = r.neg()
		if even {
			sign = -sign
		}
	}
	t, p := turnOf(r), pair{}
	if even {
		p = t.sine()
	} else {
		p = t.cosine()
	}
	if v, certain := p.rounded(0, errQuick); certain {
		return sign * v
	}
	if even {
		p = sinPair(r)
	} else {
		p = cosPair(r)
	}
	return sign * p.nearest(0, func(w working) *big.Float {
		s, c := w.sinCos(w.float(a))
		if quarter != 0 {
			s = c
		}
		return s.Abs(s)
	})
}

// Tan returns the tangent of x.
func Tan(x float64) float64 {
	a := math.Abs(x)
	if !(a >= 0x1p-28) { // x + x^3/3 + ... rounds to x
		return x
	}
	if math.IsInf(x, 0) {
		return math.NaN()
	}
	r, k := reduce(a)
	p := sinPair(r).div(cosPair(r))
	if k&1 != 0 {
		p = cosPair(r).div(sinPair(r)).neg()
	}
	v := p.nearest(0, func(w working) *big.Float {
		s, c := w.sinCos(w.float(a))
		return w.div(s, c)
	})
	if x < 0 {
		return -v
	}
	return v
}
