package problem

import (
	"math"

	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// LeastEigenvalue bounds the eigenvalues of 1-J from below, where J is the iteration matrix of a sweep: by them an
// update tells how far the field is from the solution. The bound is the same on every processor.
func (p *Problem) LeastEigenvalue() float64 { return leastOf(p.mesh, p.Operator().General()) }

// leastOf is LeastEigenvalue for a mesh with the given general operator. Fixed points inside the mesh only raise the
// eigenvalues. Where no walls and no screening determine a constant, fixed points do, and the bound is the slowest
// quarter wave along the mesh, divided by 1 + ln n: a single fixed point in a square of n x n points leaves a mode
// about that slow. Of a weighted operator it is the bound for equal weights: those that differ may lead to less.
func leastOf(m solver.Mesh, op solver.Operator) float64 {
	if v := Least(m, op); v > 0 {
		return v
	}
	op = equalWeights(op)
	nx, ny := solver.Intervals(m.NX, m.Walls.Left), solver.Intervals(m.NY, m.Walls.Top)
	sx, sy := slowest(nx, solver.Dirichlet, solver.Neumann), slowest(ny, solver.Dirichlet, solver.Neumann)
	wave := min(float64((1-op.Blend)*sx), float64(op.Blend*sy))
	return float64(2*op.Scale*wave) / (1 + elementary.Log(float64(max(nx, ny))))
}

// Least returns the least eigenvalue of 1-J for a general operator, or for equal weights in place of a weighted one,
// without fixed points inside. It is at most 0 only if neither walls nor screening determine a constant. Of a loose
// operator, whose error has the mean 0, it is the least but 0.
func Least(m solver.Mesh, op solver.Operator) float64 {
	op = equalWeights(op)
	if op.Loose {
		x, y := slowestWave(m.NX, m.Walls.Left), slowestWave(m.NY, m.Walls.Top)
		return float64(2 * op.Scale * min(float64((1-op.Blend)*x), float64(op.Blend*y)))
	}
	sx := slowest(solver.Intervals(m.NX, m.Walls.Left), m.Walls.Left, m.Walls.Right)
	sy := slowest(solver.Intervals(m.NY, m.Walls.Top), m.Walls.Top, m.Walls.Bottom)
	h, q := op.Scale, op.Blend
	return 1 - float64(2*h) + float64(2*h*float64(float64((1-q)*sx)+float64(q*sy)))
}

// equalWeights returns the operator with equal weights for a weighted one.
func equalWeights(op solver.Operator) solver.Operator {
	if op.Weighted {
		op.Scale, op.Blend = 0.5, op.Ratio/(1+op.Ratio)
	}
	return op
}

// slowest returns 1 - cos(theta) of the slowest mode between two walls that are n intervals apart.
func slowest(n int, low, high solver.Wall) float64 {
	theta := math.Pi / float64(n)
	switch {
	case low == solver.Periodic, low == solver.Neumann && high == solver.Neumann:
		return 0
	case low == solver.Neumann || high == solver.Neumann:
		theta /= 2
	}
	s := elementary.Sin(theta / 2)
	return float64(2 * float64(s*s))
}

// slowestWave returns 1 - cos(theta) of the slowest mode but the constant in a direction of so many points between two
// periodic or two Neumann walls.
func slowestWave(points int, w solver.Wall) float64 {
	theta := math.Pi / float64(solver.Intervals(points, w))
	if w == solver.Periodic {
		theta = min(2*theta, math.Pi) // a single interval has the constant alone
	}
	s := elementary.Sin(theta / 2)
	return float64(2 * float64(s*s))
}
