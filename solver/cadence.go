package solver

// Cadence says which sweeps of a run have a norm: First, First+Stride, First+2*Stride and so on. A Stride of 0 counts
// as 1, so the zero value stands for all sweeps.
type Cadence struct{ First, Stride int }

// EveryNth returns the cadence of norms after n, 2n, 3n, ... sweeps, for n >= 1.
func EveryNth(n int) Cadence { return Cadence{First: n - 1, Stride: n} }

// In returns how many of the first n sweeps have a norm.
func (c Cadence) In(sweeps int) int {
	if sweeps <= c.First {
		return 0
	}
	return (sweeps-1-c.First)/c.stride() + 1
}

// Sweep returns the sweep that has the i-th norm, i >= 0.
func (c Cadence) Sweep(i int) int { return c.First + i*c.stride() }

// Has reports whether a sweep has a norm.
func (c Cadence) Has(sweep int) bool { return sweep >= c.First && (sweep-c.First)%c.stride() == 0 }

// Of returns the first sweep of a pass that has a norm, and how many of its sweeps have one.
func (c Cadence) Of(p Pass) (first, n int) {
	before := c.In(p.First)
	return c.Sweep(before), c.In(p.First+p.Sweeps) - before
}

func (c Cadence) stride() int { return max(1, c.Stride) }

// NormsOf says which sweeps of a pass have a norm.
type NormsOf uint8

// The kinds of passes. Backends have kernels for each.
const (
	SomeNorms NormsOf = iota // any, up to all
	LastNorm                 // of the last sweep alone
	NoNorms
)

// NormsOf returns the kind of a pass.
func (l Layout) NormsOf(p Pass) NormsOf {
	first, n := l.Norms.Of(p)
	switch {
	case n == 0:
		return NoNorms
	case first == p.First+p.Sweeps-1:
		return LastNorm
	}
	return SomeNorms
}
