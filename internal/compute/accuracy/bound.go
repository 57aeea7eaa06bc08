// Package accuracy tells how far the field of a finished run is from the solution of the discrete equations: about, and
// at most. docs/numerics.md has the formulas. Sweeps leave an error that is smooth; its estimate is the solution of the
// defect equation on a few blocks of the mesh, whose defects the ranks add exactly. After cycles, the correction that
// the next cycle would make takes the place of that.
package accuracy

import (
	"math"

	"jacobi/solver"
)

// Run is what the bound and the estimate need of a run.
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

// Noise bounds what rounding contributes to the norm of a sweep: at a point, at most 7 roundings of values of at most
// Largest.
func (r Run) Noise() float64 { return 8 * r.unit() * r.Largest * math.Sqrt(r.points()) }

// AtMost returns a proven bound of the error at any point. It is infinite where only points inside the mesh, or nothing
// but rounding, determine the solution.
//
// The update of the field u is d = A(s-u), where s is the solution and A = 1-J. A is symmetric in the inner product in
// which points on Neumann walls count half, and a quarter where two walls meet. In its norm, the error is at most |d|
// divided by the least eigenvalue of A, which fixed points only raise (Cauchy's interlacing theorem). A value at a
// corner is up to twice the norm. The update of a weighted operator times the diagonal D is the residual. With c the
// least coefficient of a face, its matrix has at least c times the least eigenvalue of that of equal coefficients.
func (r Run) AtMost() float64 {
	least := r.least()
	if !(least > 0) {
		return math.Inf(1)
	}
	noise := r.Noise()
	return r.corner() * ((r.Norm*(1+32*r.unit())+noise)/least*r.damping() + float64(r.Later)*noise)
}

// damping bounds what the later sweeps leave of an error: J multiplies a norm by at most 2h. With weights it multiplies
// the largest value by at most 1.
func (r Run) damping() float64 {
	if r.Operator.Weighted {
		return 1
	}
	return math.Pow(2*r.Operator.General().Scale*(1+1e-12), float64(r.Later))
}

// least returns the least eigenvalue of A without fixed points inside, rounded down; 0 if it is not known.
func (r Run) least() float64 {
	if r.Open {
		return 0
	}
	w, o := r.Mesh.Walls, r.Operator.General()
	contrast := 1.0
	if o.Weighted {
		o.Scale, o.Blend, contrast = 0.5, o.Ratio/(1+o.Ratio), o.Contrast
	}
	x := slowest(solver.Intervals(r.Mesh.NX, w.Left), w.Left, w.Right)
	y := slowest(solver.Intervals(r.Mesh.NY, w.Top), w.Top, w.Bottom)
	return (1 - 2*o.Scale + 2*o.Scale*((1-o.Blend)*x+o.Blend*y)) * (1 - 1e-12) / contrast
}

// slowest returns 1-cos of the slowest wave between two walls, n intervals apart.
func slowest(n int, before, after solver.Wall) float64 {
	quarter := math.Pi / (4 * float64(n))
	fixed := 0.0
	for _, w := range []solver.Wall{before, after} {
		if w == solver.Dirichlet {
			fixed++
		}
	}
	s := math.Sin(fixed * quarter)
	return 2 * s * s
}

// corner returns the largest quotient of a value and the norm of the inner product.
func (r Run) corner() float64 {
	c, w := 1.0, r.Mesh.Walls
	if w.Left == solver.Neumann || w.Right == solver.Neumann {
		c *= math.Sqrt2
	}
	if w.Top == solver.Neumann || w.Bottom == solver.Neumann {
		c *= math.Sqrt2
	}
	return c
}

// Floor returns the norm below which rounding may make up all of it, so that it tells nothing of the error.
func (r Run) Floor() float64 { return r.Noise() / 4 }

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

// OfCycle is the factor between the correction of a cycle and the error that it corrects, which fits random problems.
const OfCycle = 1.6

// Sure is the contrast up to which OfChange can be relied on. Above it, errors that hardly show in changes and norms,
// such as a constant in each of several conducting regions, may be a hundred times as large.
const Sure = 20000

// OfChange estimates the error at the worst point from the largest change of the last cycle with conjugate gradients:
// later changes shrink as the norms have done. It is infinite if these have not.
func (r Run) OfChange(change float64, f Fall) float64 {
	rate := f.rate()
	if !(rate < 1) {
		return math.Inf(1)
	}
	return OfCycle * change * rate / (1 - rate)
}

// About estimates the error at the worst point. correction is that of the blocks, or that of the next cycle times
// OfCycle. It lacks the part of the error that only the finest mesh has, for which the norm stands: at a single point
// that part would be as large as the norm, and evenly spread over N points as large as the norm divided by the root of
// N. The geometric mean is taken.
func (r Run) About(correction float64) float64 {
	return correction + r.Norm*r.damping()/math.Sqrt(math.Sqrt(r.points()))
}
