package oracle

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"jacobi/solver"
)

// ErrSingular reports equations that refinement in float64 does not solve to the last digits.
var ErrSingular = errors.New("the equations are singular, or nearly so")

// refined is the change, relative to the solution, at which refinement has ended.
const refined = 1e-14

// Solve returns the solution, right to a few units in the last place of its largest value.
func (e *Equations) Solve() ([]float64, error) {
	factor, ok := e.factorize()
	if !ok {
		return nil, ErrSingular
	}
	u := slices.Clone(e.initial)
	for at := range u {
		if e.free[at] {
			u[at] = 0
		}
	}
	last := math.Inf(1)
	for {
		change, largest := e.refine(u, factor), 0.0
		for _, v := range u {
			largest = max(largest, math.Abs(v))
		}
		switch {
		case change <= refined*largest:
			e.copyPeriodic(u)
			return u, nil
		case !(change < last/2):
			return nil, ErrSingular
		}
		last = change
	}
}

// Correction returns A^-1 d in the precision of the factorization: the error of a field with defect d.
func (e *Equations) Correction(d []float64) ([]float64, error) {
	factor, ok := e.factorize()
	if !ok {
		return nil, ErrSingular
	}
	c := make([]float64, len(d))
	x := e.solve(d, factor)
	for at := range d {
		if e.free[at] {
			c[at] = x[e.place(at)]
		}
	}
	return c, nil
}

// refine adds A^-1 d to u and returns the largest change.
func (e *Equations) refine(u []float64, factor blas64.TriangularBand) (change float64) {
	x := e.solve(e.Defect(u), factor)
	for at := range u {
		if e.free[at] {
			c := x[e.place(at)]
			u[at] += c
			change = max(change, math.Abs(c))
		}
	}
	return change
}

func (e *Equations) solve(d []float64, factor blas64.TriangularBand) []float64 {
	x := make([]float64, factor.N)
	for at := range d {
		if e.free[at] {
			x[e.place(at)] = d[at] * e.weight(at)
		}
	}
	lapack64.Pbtrs(factor, blas64.General{Rows: factor.N, Cols: 1, Stride: 1, Data: x})
	return x
}

// factorize returns the Cholesky factor of A with its rows weighted, which is symmetric and positive definite. Points
// inside the mesh that are given have the equation u = 0.
func (e *Equations) factorize() (blas64.TriangularBand, bool) {
	n, width := e.size()
	a := blas64.SymmetricBand{Uplo: blas.Upper, N: n, K: width, Stride: width + 1, Data: make([]float64, n*(width+1))}
	for i := range n {
		a.Data[i*a.Stride] = 1
	}
	for at := range e.free {
		if !e.free[at] {
			continue
		}
		i, w := e.place(at), e.weight(at)
		a.Data[i*a.Stride] = w
	}
	for at := range e.free {
		if !e.free[at] {
			continue
		}
		i, w := e.place(at), e.weight(at)
		for _, c := range e.couplings(at%e.mesh.NX, at/e.mesh.NX) {
			if !e.free[c.at] {
				continue
			}
			if j := e.place(c.at); j <= i { // that of j has the others
				a.Data[j*a.Stride+i-j] -= w * (c.w[0] + c.w[1] + c.w[2])
			}
		}
	}
	return lapack64.Pbtrf(a)
}

// weight returns the part of a point that lies in the mesh: a half on a Neumann wall, a quarter where two meet. With
// materials it is multiplied by the diagonal of the equation.
func (e *Equations) weight(at int) float64 {
	ix, iy, w := at%e.mesh.NX, at/e.mesh.NX, 1.0
	if ix == 0 || ix == e.mesh.NX-1 {
		w /= 2
	}
	if iy == 0 || iy == e.mesh.NY-1 {
		w /= 2
	}
	if e.weights != nil {
		w *= e.diagonals[at]
	}
	return w
}

// size returns the number of unknowns and the bandwidth.
func (e *Equations) size() (n, width int) {
	lo, hi := e.mesh.InteriorColumns()
	long, short, ring := e.mesh.Interior().Rows(), hi-lo, e.mesh.PeriodicRows()
	if short > long {
		long, short, ring = short, long, e.mesh.PeriodicColumns()
	}
	if ring {
		return long * short, min(2*short, long*short-1)
	}
	return long * short, min(short, long*short-1)
}

// place returns the place of a point among the unknowns, which are counted along the shorter direction first. Lines of
// a periodic direction are folded, 0, n-1, 1, n-2, .., so that neighbours are at most two lines apart.
func (e *Equations) place(at int) int {
	lo, hi := e.mesh.InteriorColumns()
	rows := e.mesh.Interior()
	i, n, ring := at/e.mesh.NX-rows.Lo, rows.Rows(), e.mesh.PeriodicRows()
	j, short := at%e.mesh.NX-lo, hi-lo
	if short > n {
		i, j, n, short, ring = j, i, short, n, e.mesh.PeriodicColumns()
	}
	if ring {
		if i = 2 * i; i >= n {
			i = 2*n - 1 - i
		}
	}
	return i*short + j
}

// copyPeriodic fills the copies in periodic columns and rows.
func (e *Equations) copyPeriodic(u []float64) {
	nx, ny, m := e.mesh.NX, e.mesh.NY, e.mesh
	rows := m.Interior()
	if m.PeriodicColumns() {
		for iy := rows.Lo; iy < rows.Hi; iy++ {
			u[iy*nx], u[iy*nx+nx-1] = u[iy*nx+nx-2], u[iy*nx+1]
		}
	}
	for ix := range nx {
		fixed := ix == 0 && m.Walls.Left == solver.Dirichlet || ix == nx-1 && m.Walls.Right == solver.Dirichlet
		if m.PeriodicRows() && !fixed {
			u[ix], u[(ny-1)*nx+ix] = u[(ny-2)*nx+ix], u[nx+ix]
		}
	}
}
