package multigrid

import (
	"math"

	"jacobi/solver"
)

// Dot is an exact sum of products, independent of the order of its terms: a signed integer of 384 bits in two's
// complement, least significant limb first, in units of 2^(2E-234) with E the magnitude of the problem. Each term is
// cut to a multiple of the unit, toward zero.
//
// The error of a field may be far larger than 2^E: on a mesh of n intervals a source can make a solution of n^2 times
// its largest value. Terms of up to 2^100 times 2^2E are therefore allowed, and 2^49 of them fit.
type Dot struct {
	limbs [6]uint64
	bad   bool // a term was not a number, infinite or larger than allowed
}

const (
	// DotUnit is the exponent of the unit of a Dot, 2^(2E-DotUnit).
	DotUnit = 234
	// DotBits is the number of bits of the largest term, in units.
	DotBits = 334
	// DotSums is the number of solver.Sum in which a Dot travels.
	DotSums = 3
)

// Add adds a term.
func (d *Dot) Add(v float64, e solver.Magnitude) {
	if !solver.Integer(d.limbs[:]).AddFloat(v, 2*int(e)-DotUnit, DotBits) {
		d.bad = true
	}
}

// AddScaled adds n * 2^shift units, 0 <= shift < 384. Kernels that collect terms in words of their own use it.
func (d *Dot) AddScaled(n int64, shift int) {
	if n < 0 {
		solver.Integer(d.limbs[:]).SubScaled(-uint64(n), shift)
		return
	}
	solver.Integer(d.limbs[:]).AddScaled(uint64(n), shift)
}

// DotTerms adds many terms to a Dot, up to 2^31 between two calls of Total. It keeps a sum for each exponent, so a term
// takes no carries.
type DotTerms struct {
	e     solver.Magnitude
	least int // the exponent of terms of the first sum, as in their bits: below it they are cut
	// The sums by exponent, each as its lowest 32 bits, which carry into none, and the rest.
	sums [DotBits - 52][2]int64
	rest Dot // of other terms
}

// NewDotTerms returns one without terms for a problem of magnitude e.
func NewDotTerms(e solver.Magnitude) *DotTerms {
	return &DotTerms{e: e, least: 1075 - DotUnit + 2*int(e)}
}

// Add adds a term.
func (t *DotTerms) Add(v float64) {
	b := math.Float64bits(v)
	exp := int(b >> 52 & 0x7ff)
	i := exp - t.least
	if uint(i) >= uint(len(t.sums)) || exp == 0 || exp == 0x7ff {
		t.rest.Add(v, t.e)
		return
	}
	sign := int64(b) >> 63
	n := (int64(b&(1<<52-1)|1<<52) ^ sign) - sign
	s := &t.sums[i]
	s[0] += n & (1<<32 - 1)
	s[1] += n >> 32
}

// Total returns the sum of the terms and begins anew.
func (t *DotTerms) Total() Dot {
	total := t.rest
	for i, s := range t.sums {
		if s != [2]int64{} {
			total.AddScaled(s[0], i)
			total.AddScaled(s[1], i+32)
		}
	}
	t.sums, t.rest = [len(t.sums)][2]int64{}, Dot{}
	return total
}

// Spoil makes the sum NaN, as a bad term does.
func (d *Dot) Spoil() { d.bad = true }

// Merge adds other to d.
func (d *Dot) Merge(other Dot) {
	solver.Integer(d.limbs[:]).Add(other.limbs[:])
	d.bad = d.bad || other.bad
}

// sums returns d as sums: each has 128 bits of d, which leaves room for the carries of all ranks.
func (d Dot) sums() (s [DotSums]solver.Sum) {
	for i := range s {
		s[i] = solver.Sum{Limbs: [3]uint64{d.limbs[2*i], d.limbs[2*i+1], 0}, Bad: d.bad}
	}
	return s
}

// dotOf returns the Dot of sums that were added over ranks.
func dotOf(s []solver.Sum) (d Dot) {
	for i, part := range s {
		solver.Integer(d.limbs[2*i:]).Add(part.Limbs[:])
		d.bad = d.bad || part.Bad
	}
	return d
}

// Float returns the sum, rounded once to float64; NaN for a bad one.
func (d Dot) Float(e solver.Magnitude) float64 {
	if d.bad {
		return math.NaN()
	}
	return solver.Integer(d.limbs[:]).Float(2*int(e) - DotUnit)
}
