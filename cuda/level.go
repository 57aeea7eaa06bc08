package cuda

import (
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// level is one level of Levels: float64 on level 0, float32 on all others.
type level struct {
	multigrid.Level
	own       solver.Stripe // rows of the interior that this rank owns
	neighbour [2]bool       // by side: the rows beyond are those of another rank
	// u is the field on level 0 and the correction on all others, v is what Down leaves for Up, and b is the right-hand
	// side. Level 0 has b if there is a source.
	u, v, b  field
	hasB     bool
	fixed    driver.DevicePtr // bits of the fixed points in the rows of u; 0 if there are none inside the mesh
	tables   tables           // between this level and the next one
	down, up *smoothing
}

// slack is how much kernels read beyond an array, at most.
const slack = 4096

// newLevel returns a level without memory.
func newLevel(layout multigrid.Layout, i int) *level {
	l := &level{Level: layout.Plan.Levels[i], hasB: i > 0 || layout.Values != nil || layout.Plan.Weighted}
	l.own = l.Mesh.Interior()
	if i < layout.Agglomerated {
		l.own, l.neighbour = layout.Stripes[i], layout.Neighbour
	}
	f := field{rows: solver.Stripe{Lo: 0, Hi: l.Mesh.NY}, pitch: pitchOf(l.Mesh)}
	if l.neighbour[solver.Top] {
		f.rows.Lo = l.own.Lo - multigrid.HaloDepth
	}
	if l.neighbour[solver.Bottom] {
		f.rows.Hi = l.own.Hi + multigrid.HaloDepth
	}
	l.u, l.v, l.b = f, f, f
	return l
}

// arrays returns the arrays that need memory.
func (l *level) arrays() []*field {
	if l.hasB {
		return []*field{&l.u, &l.v, &l.b}
	}
	return []*field{&l.u, &l.v}
}

// left returns the rows of v that Down leaves for Up.
func (l *level) left() solver.Stripe { return multigrid.LeftRows(l.own, l.neighbour) }

// span is struct Span in kernels/multigrid_level.cuh.
type span struct {
	lo, hi              int32
	low, high           int32
	turn                int32
	fixedLow, fixedHigh int32
}

// What a read beyond an end of a span finds.
const (
	nearest = iota
	mirror
	wrap
)

// newSpan returns the span of n points between two walls.
func newSpan(n int, low, high solver.Wall) span {
	s := span{lo: 0, hi: int32(n), fixedLow: math.MinInt32, fixedHigh: math.MaxInt32}
	switch low {
	case solver.Dirichlet:
		s.fixedLow = 0
	case solver.Neumann:
		s.low = mirror
	case solver.Periodic:
		s.lo, s.low, s.turn = 1, wrap, int32(n-2)
	}
	switch high {
	case solver.Dirichlet:
		s.fixedHigh = int32(n - 1)
	case solver.Neumann:
		s.high = mirror
	case solver.Periodic:
		s.hi, s.high = int32(n-1), wrap
	}
	return s
}

// rowSpan returns the rows of the level's arrays. Where there is a neighbour, its rows are held.
func (l *level) rowSpan() span {
	w := l.Mesh.Walls
	s := newSpan(l.Mesh.NY, w.Top, w.Bottom)
	if l.neighbour[solver.Top] {
		s.lo, s.low, s.fixedLow = int32(l.u.rows.Lo), nearest, math.MinInt32
	}
	if l.neighbour[solver.Bottom] {
		s.hi, s.high, s.fixedHigh = int32(l.u.rows.Hi), nearest, math.MaxInt32
	}
	return s
}

func (l *level) columnSpan() span { return newSpan(l.Mesh.NX, l.Mesh.Walls.Left, l.Mesh.Walls.Right) }

// regular returns the points that are held and swept.
func (s span) regular() (lo, hi int32) { return max(s.lo, addOne(s.fixedLow)), min(s.hi, s.fixedHigh) }

func addOne(i int32) int32 { return i + 1 }

// held returns the point at which a read of point i finds its value: Span.held.
func (s span) held(i int) int {
	lo, hi := int(s.lo), int(s.hi)
	for i < lo || i >= hi {
		below := i < lo
		switch {
		case below && s.low == nearest:
			return lo
		case !below && s.high == nearest:
			return hi - 1
		case below && s.low == mirror:
			i = 2*lo - i
		case !below && s.high == mirror:
			i = 2*(hi-1) - i
		case below:
			i += int(s.turn)
		default:
			i -= int(s.turn)
		}
	}
	return i
}
