package problem

import (
	"math"

	"jacobi/internal/compute/elementary"
)

// bounds are limits of the values that an expression takes in a box. They hold for the rounded values: rounding is
// monotone, and so are the functions of package elementary where they say so, since their values are rounded correctly.
// False and true are 0 and 1.
type bounds struct {
	lo, hi float64
	nan    bool // it may also be NaN
	jumps  bool // it may jump in the box: a choice, or the whole part of a number, may change
}

// anything are the bounds of an expression of which nothing is known.
func anything(jumps bool) bounds { return bounds{math.Inf(-1), math.Inf(1), true, jumps} }

// exactly are the bounds of a constant.
func exactly(v float64) bounds { return bounds{}.within(v, v) }

// decided reports whether the expression has one value in the box.
func (a bounds) decided() bool { return a.lo == a.hi && !a.nan }

// within returns a with other limits: anything if they are no numbers.
func (a bounds) within(lo, hi float64) bounds {
	if lo != lo || hi != hi {
		return anything(a.jumps)
	}
	a.lo, a.hi = lo, hi
	return a
}

// with returns a with what b may be besides a number.
func (a bounds) with(b bounds) bounds {
	a.nan, a.jumps = a.nan || b.nan, a.jumps || b.jumps
	return a
}

// corners returns the limits of a function of two numbers that is monotone in each of them.
func corners(f func(a, b float64) float64, a, b bounds) bounds {
	p, s := f(a.lo, b.lo), f(a.hi, b.hi)
	q, r := p, s // on a line along x or y one of the two is often a single number
	if a.lo != a.hi && b.lo != b.hi {
		q, r = f(a.lo, b.hi), f(a.hi, b.lo)
	}
	return a.with(b).within(min(p, q, r, s), max(p, q, r, s))
}

// The functions of two numbers, and the operators.

func sumBounds(a, b bounds) bounds        { return a.with(b).within(a.lo+b.lo, a.hi+b.hi) }
func differenceBounds(a, b bounds) bounds { return a.with(b).within(a.lo-b.hi, a.hi-b.lo) }
func minBounds(a, b bounds) bounds        { return a.with(b).within(min(a.lo, b.lo), min(a.hi, b.hi)) }
func maxBounds(a, b bounds) bounds        { return a.with(b).within(max(a.lo, b.lo), max(a.hi, b.hi)) }

func productBounds(a, b bounds) bounds {
	return corners(func(a, b float64) float64 { return a * b }, a, b)
}

func quotientBounds(a, b bounds) bounds {
	if b.lo <= 0 && b.hi >= 0 {
		return anything(a.jumps || b.jumps)
	}
	return corners(func(a, b float64) float64 { return a / b }, a, b)
}

// remainderBounds are those of math.Mod. While a number of one sign changes by less than b, its remainder falls where
// it jumps.
func remainderBounds(a, b bounds) bounds {
	if b.decided() && (a.lo >= 0 || a.hi <= 0) && a.hi-a.lo < math.Abs(b.lo) {
		if lo, hi := math.Mod(a.lo, b.lo), math.Mod(a.hi, b.lo); lo <= hi {
			return a.within(lo, hi)
		}
	}
	return anything(true)
}

func powerBounds(a, b bounds) bounds {
	whole := b.decided() && b.lo == math.Trunc(b.lo) && b.lo > 0
	switch {
	case a.lo > 0 || a.lo == 0 && b.lo > 0:
		return corners(elementary.Pow, a, b)
	case whole && math.Mod(b.lo, 2) == 1:
		return a.with(b).within(elementary.Pow(a.lo, b.lo), elementary.Pow(a.hi, b.lo))
	case whole:
		least, most := magnitudes(a)
		return a.with(b).within(elementary.Pow(least, b.lo), elementary.Pow(most, b.lo))
	}
	return anything(a.jumps || b.jumps)
}

func hypotBounds(a, b bounds) bounds {
	leastA, mostA := magnitudes(a)
	leastB, mostB := magnitudes(b)
	return a.with(b).within(elementary.Hypot(leastA, leastB), elementary.Hypot(mostA, mostB))
}

// atan2Bounds are those of the angle of a box around which, or through whose negative x axis, it does not go.
func atan2Bounds(y, x bounds) bounds {
	if x.lo <= 0 && y.lo <= 0 && y.hi >= 0 {
		return y.with(x).with(bounds{jumps: true}).within(-math.Pi, math.Pi)
	}
	return corners(elementary.Atan2, y, x)
}

// magnitudes returns the limits of an absolute value.
func magnitudes(a bounds) (least, most float64) {
	low, high := math.Abs(a.lo), math.Abs(a.hi)
	if a.lo <= 0 && a.hi >= 0 {
		return 0, max(low, high)
	}
	return min(low, high), max(low, high)
}

// The functions of one number.

// rising returns the bounds of a function that nowhere falls, for numbers from least to most.
func rising(f func(float64) float64, least, most float64) func(bounds) bounds {
	return func(a bounds) bounds {
		if a.lo < least || a.hi > most {
			a.nan = true
			a.lo, a.hi = min(max(a.lo, least), most), max(min(a.hi, most), least)
		}
		return a.within(f(a.lo), f(a.hi))
	}
}

// everywhere is rising for a function of all numbers.
func everywhere(f func(float64) float64) func(bounds) bounds {
	return rising(f, math.Inf(-1), math.Inf(1))
}

// even returns the bounds of a function of the absolute value that nowhere falls with it.
func even(f func(float64) float64) func(bounds) bounds {
	return func(a bounds) bounds {
		least, most := magnitudes(a)
		return a.within(f(least), f(most))
	}
}

// wave returns the bounds of a sine or a cosine. Its slope is at most 1.
func wave(f func(float64) float64) func(bounds) bounds {
	return func(a bounds) bounds {
		width := a.hi - a.lo
		if !(width < 1) {
			a.nan = a.nan || math.IsInf(a.lo, 0) || math.IsInf(a.hi, 0)
			return a.within(-1, 1)
		}
		rounding := float64(1e-15 * (1 + math.Abs(a.lo) + math.Abs(a.hi)))
		middle, reach := f(halfway(a.lo, a.hi)), float64(width/2*(1+1e-12))+rounding
		return a.within(max(-1, middle-reach), min(1, middle+reach))
	}
}

// tangentBounds use that the tangent falls over less than pi only where it jumps.
func tangentBounds(a bounds) bounds {
	if lo, hi := elementary.Tan(a.lo), elementary.Tan(a.hi); a.hi-a.lo < 3 && lo <= hi {
		return a.within(lo, hi)
	}
	return anything(true)
}

func acosBounds(a bounds) bounds {
	b := rising(func(v float64) float64 { return -elementary.Acos(v) }, -1, 1)(a)
	return b.within(-b.hi, -b.lo)
}

// steps returns the bounds of the whole part of a number, which jumps between two of them.
func steps(f func(float64) float64) func(bounds) bounds {
	return func(a bounds) bounds {
		lo, hi := f(a.lo), f(a.hi)
		return bounds{nan: a.nan, jumps: lo != hi}.within(lo, hi)
	}
}

// compared are the bounds of a comparison: true where all pairs of values meet it, false where none does.
func (c comparison) bounds(a, b bounds) bounds {
	one, other := c.holds(a.lo, b.hi), c.holds(a.hi, b.lo)
	out := bounds{lo: min(one, other), hi: max(one, other)}
	if c.equality {
		out = exactly(c.holds(a.lo, b.lo))
		if apart := a.hi < b.lo || b.hi < a.lo; !apart && !(a.decided() && b.decided()) {
			out = bounds{lo: 0, hi: 1}
		}
	}
	if a.nan || b.nan {
		out.lo, out.hi = 0, 1
	}
	return out
}

// chosen are the bounds of a choice between two branches.
func chosen(cond bounds, yes, no func() bounds) bounds {
	switch {
	case cond.lo > 0:
		return yes()
	case cond.hi < 1:
		return no()
	}
	a, b := yes(), no()
	out := a.with(b)
	out.lo, out.hi = min(a.lo, b.lo), max(a.hi, b.hi)
	out.jumps = true
	return out
}
