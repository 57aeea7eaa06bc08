package oracle

import (
	"math"

	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// Loosen gives equations whose constant nothing determines a solution: the mean of their right-hand sides, over the
// part of the material that is driven, is taken off them, and one point of that part is given: that with the largest
// diagonal, which moves the others least by what rounding leaves. The other parts are left out. It returns the mean,
// that of the absolute values, and how many parts are driven, which has to be one.
func (e *Equations) Loosen(p Problem) (taken, gross float64, driven int) {
	hx := p.Width / float64(solver.Intervals(e.mesh.NX, e.mesh.Walls.Left))
	diagonal := func(at int) float64 {
		if e.weights != nil {
			return e.diagonals[at]
		}
		return 1 / (float64(hx*hx) * e.h / (1 + e.q/(1-e.q)))
	}
	var part []int
	for _, g := range e.parts() {
		if g.driven {
			driven, part = driven+1, g.points
			continue
		}
		if e.out == nil {
			e.out = make([]bool, len(e.free))
		}
		for _, at := range g.points {
			e.free[at], e.initial[at], e.out[at] = false, 0, true
		}
	}
	if driven != 1 {
		return 0, 0, driven
	}
	var net, sizes, area results.Sum
	for _, at := range part {
		w, f := e.share(at), e.b[at]*diagonal(at)
		net.Add(w * f)
		sizes.Add(math.Abs(w * f))
		area.Add(w)
	}
	taken = net.Value() / area.Value()
	given := part[0]
	for _, at := range part {
		e.b[at] -= taken / diagonal(at)
		if diagonal(at) > diagonal(given) {
			given = at
		}
	}
	e.free[given], e.initial[given] = false, 0
	return taken, sizes.Value() / area.Value(), 1
}

// Center takes the mean off a solution of equations that Loosen has changed.
func (e *Equations) Center(u []float64, p Problem) {
	var sum, area results.Sum
	inside := func(at int) bool {
		return e.original(at) == at && (p.Materials == nil || p.Materials.Coefficient[at] > 0 && !e.out[at])
	}
	for at, v := range u {
		if inside(at) {
			sum.Add(e.share(at) * v)
			area.Add(e.share(at))
		}
	}
	mean := sum.Value() / area.Value()
	for at := range u {
		if inside(e.original(at)) {
			u[at] -= mean
		}
	}
}

// share is the part of a point that lies in the mesh.
func (e *Equations) share(at int) float64 {
	if e.weights != nil {
		if e.diagonals[at] == 0 {
			return 0
		}
		return e.weight(at) / e.diagonals[at]
	}
	return e.weight(at)
}
