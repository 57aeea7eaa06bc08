// Package spectrum bounds the eigenvalues of 1-J, where J is the iteration matrix of a sweep: by them an update tells
// how far the field is from the solution. The values are the same on every processor.
package spectrum

import (
	"math"

	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// LeastOf bounds the eigenvalues of 1-J from below, for a mesh with the given general operator. Fixed points inside the
// mesh only raise them. Where no walls and no screening determine a constant, fixed points do, and the bound is the
// slowest quarter wave along the mesh, divided by 1 + ln n: a single fixed point in a square of n x n points leaves a
// mode about that slow. Of a weighted operator it is the bound for equal weights: those that differ may lead to less.
func LeastOf(m solver.Mesh, op solver.Operator) float64 {
	if op.Weighted {
		op.Scale, op.Blend = 0.5, op.Ratio/(1+op.Ratio)
	}
	nx, ny := solver.Intervals(m.NX, m.Walls.Left), solver.Intervals(m.NY, m.Walls.Top)
	sx, sy := Slowest(nx, m.Walls.Left, m.Walls.Right), Slowest(ny, m.Walls.Top, m.Walls.Bottom)
	if v := Least(op.Scale, op.Blend, sx, sy); v > 0 {
		return v
	}
	sx, sy = Slowest(nx, solver.Dirichlet, solver.Neumann), Slowest(ny, solver.Dirichlet, solver.Neumann)
	wave := min(float64((1-op.Blend)*sx), float64(op.Blend*sy))
	return float64(2*op.Scale*wave) / (1 + elementary.Log(float64(max(nx, ny))))
}

// Least returns the least eigenvalue of 1-J for the general operator with weights h and q on a mesh whose slowest modes
// along a row and a column have 1 - cos(theta) of sx and sy (see Slowest). It is at most 0 only if nothing determines a
// constant.
func Least(h, q, sx, sy float64) float64 {
	return 1 - float64(2*h) + float64(2*h*float64(float64((1-q)*sx)+float64(q*sy)))
}

// Slowest returns 1 - cos(theta) of the slowest mode between two walls that are n intervals apart.
func Slowest(n int, low, high solver.Wall) float64 {
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
