// Package accuracy tells about how far the field of a finished run is from the solution of the discrete equations.
// docs/numerics.md has the formulas. Sweeps leave an error that is smooth; its estimate is the solution of the defect
// equation on a few blocks of the mesh, whose defects the ranks add exactly. After cycles, the correction that the next
// cycle would make takes the place of that.
package accuracy

import (
	"math"

	"jacobi/internal/compute/problem"
	"jacobi/solver"
)

// Run is what the estimate needs of a run.
type Run struct {
	Mesh     solver.Mesh
	Operator solver.Operator
	Norm     float64 // the last one
	Later    int     // sweeps from the field before the sweep of Norm to the last field
	Largest  float64 // absolute value of the field
	Open     bool    // points that a weighted operator updates border on points without material
}

// unit returns half a unit in the last place of 1.
func (r Run) unit() float64 {
	if r.Mesh.DType == solver.Float32 {
		return 0x1p-24
	}
	return 0x1p-53
}

// points returns the number of points that a sweep updates, fixed ones among them.
func (r Run) points() float64 {
	lo, hi := r.Mesh.InteriorColumns()
	return float64(hi-lo) * float64(r.Mesh.Interior().Rows())
}

// damping is what the later sweeps leave of an error at most: J multiplies a norm by at most 2h.
func (r Run) damping() float64 { return math.Pow(2*r.Operator.General().Scale, float64(r.Later)) }

// least returns the least eigenvalue of 1-J without fixed points inside; not above 0 if it is not known. With weights,
// it is at least that of equal ones divided by the contrast.
func (r Run) least() float64 {
	if r.Open {
		return 0
	}
	least := problem.Least(r.Mesh, r.Operator.General())
	if r.Operator.Weighted {
		least /= r.Operator.Contrast
	}
	return least
}

// Floor returns the norm below which rounding may make up all of it, so that it tells nothing of the error: at a point,
// two roundings of values of at most Largest.
func (r Run) Floor() float64 { return 2 * r.unit() * r.Largest * math.Sqrt(r.points()) }

// Rounded returns about how large an error rounding may leave where it hides the norm. Points stop changing when their
// updates are below half a unit in the last place: an error of unit/2 times Largest divided by the least eigenvalue, if
// all updates had one sign. A quarter of that held in weakly screened problems. It is infinite where only points inside
// the mesh determine the constant.
func (r Run) Rounded() float64 {
	least := r.least()
	if !(least > 0) {
		return math.Inf(1)
	}
	return r.unit() * r.Largest / (8 * least)
}

// ByDifferences returns about how large an error cycles leave that take their residuals from differences. What rounding
// moves does not grow with the contrast then. In 100 runs the error was at most that.
func (r Run) ByDifferences() float64 {
	if !r.Open {
		r.Operator.Contrast = 1
	}
	return 8 * r.Rounded()
}

// OfCycle is the factor between the correction of a cycle and the error that it corrects, which fits random problems.
const OfCycle = 1.6

// OfMoved is the factor between what rounding has moved by the coarsest mesh alone and the error that it has left.
const OfMoved = 1.5

// Sure is the contrast up to which Changes.Error can be relied on. Above it, errors that hardly show in changes and
// norms, such as a constant in each of several conducting regions, may be a hundred times as large.
const Sure = 20000

// Changes are the largest changes that cycles make to the field at a point.
type Changes struct {
	Last float64 `json:"last"` // that the last cycle with conjugate gradients has made; 0 without them
	Next float64 `json:"next"` // that the next cycle would make on its first coarser mesh
}

// Merge returns the larger ones of both.
func (c Changes) Merge(o Changes) Changes { return Changes{max(c.Last, o.Last), max(c.Next, o.Next)} }

// ofLast times the sum of later changes, if these shrink as the last norm did, is about the error of random problems.
const ofLast = 1.75

// Error estimates the error at the worst point after cycles of a weighted operator by later changes, but by no less
// than twice the next one. It is infinite if the norms have not fallen.
func (c Changes) Error(f Fall) float64 {
	rate := f.rate()
	if !(rate < 1) {
		return math.Inf(1)
	}
	return max(ofLast*c.Last*rate/(1-rate), 2*c.Next)
}

// About estimates the error at the worst point. correction is that of the blocks, or that of the next cycle times
// OfCycle. It lacks the part of the error that only the finest mesh has, for which the norm stands: at a single point
// that part would be as large as the norm, and evenly spread over N points as large as the norm divided by the root of
// N. The geometric mean is taken.
func (r Run) About(correction float64) float64 {
	return correction + r.Norm*r.damping()/math.Sqrt(math.Sqrt(r.points()))
}

// Fall tells by how much the norms of a run fall from one to the next. The zero Fall has no norm.
type Fall struct {
	first, before, last float64
	count               int
}

// Add adds the next norms.
func (f *Fall) Add(norms []float64) {
	for _, norm := range norms {
		if f.count == 0 {
			f.first = norm
		}
		f.before, f.last = f.last, norm
		f.count++
	}
}

// rate returns the quotient of the last norm and the one before it, or the mean quotient if the last norm has not
// fallen. It is infinite with fewer than two norms.
func (f *Fall) rate() float64 {
	switch {
	case f.count < 2:
		return math.Inf(1)
	case f.last < f.before:
		return f.last / f.before
	}
	return math.Pow(f.last/f.first, 1/float64(f.count-1))
}
