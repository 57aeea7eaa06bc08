// Package oracle solves the discrete equations of docs/numerics.md directly: by a banded Cholesky factorization with
// iterative refinement, and without any code that sweeps or cycles. Only tests use it: they compare fields of runs, and
// what runs say about their errors, with its solutions.
package oracle

import (
	"math"
	"slices"

	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// Problem is -(u_xx + u_yy) + k2 u = f on a mesh. Arrays have a value a point, by rows.
type Problem struct {
	Mesh          solver.Mesh
	Width, Height float64
	Screening     float64
	Initial       []float64    // only the values of fixed walls and fixed points count
	Source        []float64    // f; nil for 0
	Slopes        [4][]float64 // outward derivatives along the left, right, top and bottom wall; nil for 0
	Fixed         []bool       // points besides those of fixed walls that keep their initial values; nil for none
	Materials     *Materials   // nil: the coefficient is 1
	Axis          string       // of a body of revolution with materials: left, right, top or bottom; "" for none
}

// Equations are those of a problem: d = b - u + J u = 0 at every free point, where
//
//	J u = h ((1-q) (W + E) + q (N + S))
//
// and h, q and b are rounded to the type of the mesh.
type Equations struct {
	mesh    solver.Mesh
	h, q    float64
	b       []float64
	free    []bool
	initial []float64
	// Of a problem with materials: the weights of the western, eastern, northern and southern neighbour, by points, and
	// the diagonal of the equation of each point.
	weights   [][4]float64
	diagonals []float64
	hx, hy    float64
	turns     []float64 // r by points, over the parts of the mesh that are theirs; 1 without an axis
	holds     []float64 // what screening and Robin walls add to the diagonal, divided by it
	held      []float64 // holds, of equations by differences
	pulled    []bool    // points that a screening or a Robin wall pulls to 0
	out       []bool    // points that are left out: see Settle
}

// NewEquations returns the equations of p.
func NewEquations(p Problem) *Equations {
	m := p.Mesh
	e := &Equations{mesh: m, b: make([]float64, m.NX*m.NY), free: make([]bool, m.NX*m.NY),
		initial: slices.Clone(p.Initial)}
	hx := p.Width / float64(solver.Intervals(m.NX, m.Walls.Left))
	hy := p.Height / float64(solver.Intervals(m.NY, m.Walls.Top))
	if math.Abs(hy-hx) <= 1e-12*hx { // lengths in decimal digits
		hy = hx
	}
	if p.Materials != nil {
		e.weigh(p, hx, hy)
		return e
	}
	rho := float64((hx / hy) * (hx / hy))
	square := float64(hx * hx)
	d := float64(2*(1+rho)) + float64(p.Screening*square)
	h, q := (1+rho)/d, rho/(1+rho)
	perX, perY := float64(h*(1-q))*float64(2*hx), float64(h*q)*float64(2*hy)
	e.h, e.q = e.round(h), e.round(q)
	lo, hi := m.InteriorColumns()
	rows := m.Interior()
	for iy := rows.Lo; iy < rows.Hi; iy++ {
		for ix := lo; ix < hi; ix++ {
			at, b := iy*m.NX+ix, 0.0
			if p.Source != nil {
				b = float64(p.Source[at] * (square / d))
			}
			for side, s := range [4]struct {
				on   bool
				i    int
				unit float64
			}{{ix == 0, iy, perX}, {ix == m.NX-1, iy, perX}, {iy == 0, ix, perY}, {iy == m.NY-1, ix, perY}} {
				if s.on && p.Slopes[side] != nil {
					b += float64(p.Slopes[side][s.i] * s.unit)
				}
			}
			e.b[at], e.free[at] = e.round(b), p.Fixed == nil || !p.Fixed[at]
		}
	}
	return e
}

func (e *Equations) round(v float64) float64 {
	if e.mesh.DType == solver.Float32 {
		return float64(float32(v))
	}
	return v
}

// Free reports whether a point is unknown: neither given nor a copy.
func (e *Equations) Free(at int) bool { return e.free[at] }

// coupling is a neighbour of a point, and its weight in J: the exact sum of w.
type coupling struct {
	at int
	w  [3]float64
}

// couplings returns the four neighbours of a point: beyond a Neumann wall the mirror point, beyond a periodic one the
// point that it copies.
func (e *Equations) couplings(ix, iy int) [4]coupling {
	m := e.mesh
	west, east := beside(ix, m.NX, m.PeriodicColumns())
	north, south := beside(iy, m.NY, m.PeriodicRows())
	if e.weights != nil {
		w := e.weights[iy*m.NX+ix]
		return [4]coupling{{iy*m.NX + west, [3]float64{w[0]}}, {iy*m.NX + east, [3]float64{w[1]}},
			{north*m.NX + ix, [3]float64{w[2]}}, {south*m.NX + ix, [3]float64{w[3]}}}
	}
	high, low := product(e.h, e.q)
	wx, wy := [3]float64{e.h, -high, -low}, [3]float64{high, low}
	return [4]coupling{{iy*m.NX + west, wx}, {iy*m.NX + east, wx}, {north*m.NX + ix, wy}, {south*m.NX + ix, wy}}
}

func beside(i, n int, periodic bool) (before, after int) {
	before, after = i-1, i+1
	switch {
	case periodic && i == 1:
		before = n - 2
	case i == 0:
		before = 1
	}
	switch {
	case periodic && i == n-2:
		after = 1
	case i == n-1:
		after = n - 2
	}
	return before, after
}

// Defect returns d of the field u at all points, 0 where u is given. It is computed exactly and rounded once.
func (e *Equations) Defect(u []float64) []float64 {
	d := make([]float64, len(u))
	for at := range u {
		if !e.free[at] {
			continue
		}
		var sum results.Sum
		add := func(w, v float64) {
			high, low := product(w, v)
			sum.Add(high)
			sum.Add(low)
		}
		sum.Add(e.b[at])
		if e.held == nil {
			sum.Add(-u[at])
		} else {
			add(-e.held[at], u[at])
		}
		for _, c := range e.couplings(at%e.mesh.NX, at/e.mesh.NX) {
			for _, w := range c.w {
				add(w, u[c.at])
				if e.held != nil {
					add(-w, u[at])
				}
			}
		}
		d[at] = sum.Value()
	}
	return d
}

// product returns a*b as the sum of two numbers, exactly if nothing underflows.
func product(a, b float64) (high, low float64) {
	high = float64(a * b)
	return high, math.FMA(a, b, -high)
}
