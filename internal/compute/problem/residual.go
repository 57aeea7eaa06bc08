package problem

import (
	"math"

	"jacobi/solver"
)

// Residual has sums of the residual b - A u over points. A is the matrix of the equations in units of the source; b has
// the source, the walls' derivatives and the values of points that no sweep updates.
type Residual struct {
	Squares, Right float64 // of b - A u, and of b
	// Sum is that of the equations as they are multiplied for multigrid, and Hold what A u would add to it if u were 1.
	// Couplings of two points that sweeps update cancel out in both.
	Sum, Hold float64
}

// Residual returns those sums over the points of row iy that a sweep of a weighted operator updates. above, here and
// below are rows of the field u; one beyond a Neumann wall is nil.
func (p *Problem) Residual(iy int, above, here, below []float64) (r Residual, err error) {
	rows, stencils := [3][]float64{above, here, below}, [3]*stencil{}
	for i := range rows {
		y := iy - 1 + i
		if rows[i] == nil {
			rows[i], y = rows[2-i], iy+1-i
		}
		y, _ = p.mesh.Canonical(y)
		if stencils[i], err = p.stencil(y); err != nil {
			return r, err
		}
	}
	st, n, unit := stencils[1], p.mesh.NX, math.Ldexp(1, -p.unit)
	buf := make([]float64, 5*n)
	whole := buf[4*n:]
	p.equations(st, solver.Diagonal, iy, 0, whole)
	var weights [4][]float64
	for i := range weights {
		weights[i] = buf[i*n:][:n]
		st.weights(solver.West+solver.Value(i), weights[i])
	}
	for ix, free := range st.free {
		if !free {
			continue
		}
		west, east := p.columnsBeside(ix)
		u := rows[1][ix]
		weight := [4]float64{weights[0][ix], weights[1][ix], weights[2][ix], weights[3][ix]}
		v := [4]float64{rows[1][west], rows[1][east], rows[0][ix], rows[2][ix]}
		swept := [4]bool{st.free[west], st.free[east], stencils[0].free[ix], stencils[2].free[ix]}
		update, fixed, hold := st.b[ix]-float64(st.hold[ix]*u), st.b[ix], st.hold[ix]
		for k := range weight {
			update += float64(weight[k] * (v[k] - u)) // rounded less than weight v - u would be
			if !swept[k] {
				fixed += float64(weight[k] * v[k])
				hold += weight[k]
			}
		}
		residual, b := float64(st.diagonal[ix]*update), float64(st.diagonal[ix]*fixed)
		r.Squares += float64(residual * residual)
		r.Right += float64(b * b)
		r.Sum += float64(whole[ix] * unit * update)
		r.Hold += float64(whole[ix] * unit * hold)
	}
	return r, nil
}

// columnsBeside returns the columns that hold the values west and east of column ix, which a sweep updates.
func (p *Problem) columnsBeside(ix int) (west, east int) {
	last := p.mesh.NX - 1
	west, east = ix-1, ix+1
	switch {
	case p.mesh.PeriodicColumns() && ix == 1:
		west = last - 1
	case west < 0:
		west = 1
	}
	switch {
	case p.mesh.PeriodicColumns() && ix == last-1:
		east = 1
	case east > last:
		east = last - 1
	}
	return west, east
}
