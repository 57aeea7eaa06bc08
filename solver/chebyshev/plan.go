// Package chebyshev solves the equations of a mesh by Chebyshev's iteration: Jacobi sweeps with weights that are known
// in advance, so that no sweep waits for a norm. docs/methods.md explains the method, docs/numerics.md defines its
// bits. The package knows no device and no network.
package chebyshev

import (
	"fmt"
	"math"

	"jacobi/internal/elementary"
	"jacobi/solver"
)

// Quarters is the number of parts of a cycle. At the end of each, and nowhere else, the partial product of the
// iteration is small: the error is at most that at the beginning of the cycle.
const Quarters = 4

// damping is what a cycle leaves of an error, at most: one part in 500. With so much or more, the first quarter of a
// cycle leaves no more than there was.
const damping = 1000 // 2/eps

// mostWeights bounds the sweeps of a cycle. A mesh that needs more has 10^14 points if it is square.
const mostWeights = 1 << 24

// headroom is by how many powers of two the largest update at the end of a quarter may exceed that of the initial
// field.
const headroom = 8

// Plan is the cycle of a run. It follows from the mesh and its operator alone, so it is the same on all ranks.
type Plan struct {
	// Weights are those of a cycle: four times a plain sweep and a quarter of the weights of the polynomial.
	Weights solver.Weights
	// Stride is the number of sweeps from one plain sweep, and so one norm, to the next.
	Stride int
	// Least and Largest bound the eigenvalues of 1-J.
	Least, Largest float64
}

// NewPlan returns the cycle for a mesh in float64 with the given operator, of which the source and the fixed points do
// not count.
func NewPlan(m solver.Mesh, op solver.Operator) (*Plan, error) {
	if m.DType != solver.Float64 {
		return nil, fmt.Errorf("chebyshev: a mesh of %v: only float64 is possible", m.DType)
	}
	op = op.General()
	p := &Plan{Least: LeastOf(m, op), Largest: 1 + float64(2*op.Scale)}
	need, k := math.Sqrt(p.Largest/p.Least)/2*elementary.Log(damping), Quarters
	for float64(k) < need {
		if k *= 2; k > mostWeights {
			return nil, fmt.Errorf("chebyshev: a mesh of %d x %d needs cycles of %.2g sweeps; at most %d are possible",
				m.NX, m.NY, need, mostWeights)
		}
	}
	quarter := k / Quarters
	p.Stride = 1 + quarter
	weights := Weights(p.Least, p.Largest, k)
	for i := range Quarters {
		p.Weights = append(append(p.Weights, 0), weights[i*quarter:(i+1)*quarter]...)
	}
	return p, nil
}

// LeastOf bounds the eigenvalues of 1-J from below, for a mesh with the given general operator. Fixed points inside the
// mesh only raise them. Where no walls and no screening determine a constant, fixed points do, and the bound is the
// slowest quarter wave along the mesh, divided by 1 + ln n: a single fixed point in a square of n x n points leaves a
// mode about that slow.
func LeastOf(m solver.Mesh, op solver.Operator) float64 {
	nx, ny := solver.Intervals(m.NX, m.Walls.Left), solver.Intervals(m.NY, m.Walls.Top)
	sx, sy := Slowest(nx, m.Walls.Left, m.Walls.Right), Slowest(ny, m.Walls.Top, m.Walls.Bottom)
	if v := Least(op.Scale, op.Blend, sx, sy); v > 0 {
		return v
	}
	sx, sy = Slowest(nx, solver.Fixed, solver.Neumann), Slowest(ny, solver.Fixed, solver.Neumann)
	wave := min(float64((1-op.Blend)*sx), float64(op.Blend*sy))
	return float64(2*op.Scale*wave) / (1 + elementary.Log(float64(max(nx, ny))))
}

// Factor returns what a cycle leaves of an error, at most: 1/T_k(x), where x = (Largest+Least)/(Largest-Least).
func (p *Plan) Factor() float64 {
	k := Quarters * (p.Stride - 1)
	x := math.Sqrt(p.Largest / p.Least)
	return 1 / math.Cosh(float64(k)*math.Log((x+1)/(x-1)))
}

// Fit returns the layout of a backend for the plan: with the general operator and the weights, and with a unit of the
// sums for the updates at the ends of quarters. These are at most 2^headroom times as large as the first ones; an
// update that exceeds that ends the run with an error.
func (p *Plan) Fit(l solver.Layout) solver.Layout {
	if l.Operator.Plain() {
		l.Magnitude++ // updates of the plain average are at most twice its values
	}
	l.Operator, l.Weights, l.Magnitude = l.Operator.General(), p.Weights, l.Magnitude+headroom
	return l
}

// Last returns after how many sweeps a run ends that may do limit: after a plain sweep. It fails if there is no quarter
// within the limit.
func (p *Plan) Last(limit int) (int, error) {
	if limit <= p.Stride {
		return 0, fmt.Errorf("a quarter of a cycle has %d sweeps on this mesh, and a norm follows: at least %d are "+
			"wanted", p.Stride, p.Stride+1)
	}
	return (limit-1)/p.Stride*p.Stride + 1, nil
}
