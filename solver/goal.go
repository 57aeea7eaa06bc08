package solver

import "math"

// Goal says which norms are so small that a run has converged.
type Goal struct {
	Tolerance float64 // a norm of at most Tolerance,
	Relative  float64 // or of at most Relative times Base
	// Base is the norm of the first update of the field that is 0 at all points that sweeps update, and has the values
	// of walls and fixed points at the others. Where it is 0, the first norm of the run takes its place.
	Base float64
	// Blind is what a norm may have lost by the unit of its sum; see Blind.
	Blind float64
}

// Target returns the largest norm that may meet the goal; 0 if none does.
func (g Goal) Target() float64 { return max(g.Tolerance, g.Relative*g.Base) }

// slack is the part by which a norm that meets the goal may exceed the target, once what it may have lost is added.
const slack = 1e-6

// Met reports whether a norm meets the goal.
func (g Goal) Met(norm float64) bool {
	target := g.Target()
	return norm <= target && target > 0 && norm+g.Blind <= target*(1+slack)
}

// MetBy returns the index of the first norm that meets the goal. norms are those of a run from its beginning.
func (g Goal) MetBy(norms []float64) (index int, ok bool) {
	for i, norm := range norms {
		if g.Base == 0 {
			g.Base = norm
		}
		if g.Met(norm) {
			return i, true
		}
	}
	return 0, false
}

// Blind bounds what a norm over the mesh may lose: the sum of each group is cut to a multiple of the unit of e.
func Blind(m Mesh, e Magnitude) float64 {
	ceil := func(n, by int) float64 { return float64((n + by - 1) / by) }
	groups := ceil(m.NX, GroupCols) * (ceil(m.NY, GroupRows) + 1)
	return math.Ldexp(math.Sqrt(groups), int(e)-UnitBits/2)
}
