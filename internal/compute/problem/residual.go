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
	rows, frees := [3][]float64{above, here, below}, [3][]bool{}
	w := p.take(iy)
	defer p.give(w)
	for i := range rows {
		y := iy - 1 + i
		if rows[i] == nil {
			rows[i], y = rows[2-i], iy+1-i
		}
		y, _ = p.mesh.Canonical(y)
		if frees[i], err = w.free(y); err != nil {
			return r, err
		}
	}
	iy, _ = p.mesh.Canonical(iy)
	st, err := w.stencil(iy)
	if err != nil {
		return r, err
	}
	last, unit := p.mesh.NX-1, math.Ldexp(1, -p.unit)
	var weights [4][chunk]float64
	var whole [chunk]float64
	for ix, free := range st.free {
		i := ix % chunk
		if n := min(chunk, p.mesh.NX-ix); i == 0 {
			for k := range weights {
				st.weights(solver.West+solver.Value(k), ix, weights[k][:n])
			}
			p.equations(st, solver.Diagonal, iy, ix, unit, whole[:n])
		}
		if !free {
			continue
		}
		west, east := ix-1, ix+1
		if ix <= 1 || ix >= last-1 {
			west, east = p.columnsBeside(ix)
		}
		u, update, fixed, hold := rows[1][ix], st.b[ix], st.b[ix], st.hold[ix]
		update -= float64(hold * u)
		// Weight v - u would be rounded more.
		update += float64(weights[0][i] * (rows[1][west] - u))
		update += float64(weights[1][i] * (rows[1][east] - u))
		update += float64(weights[2][i] * (rows[0][ix] - u))
		update += float64(weights[3][i] * (rows[2][ix] - u))
		if !(st.free[west] && st.free[east] && frees[0][ix] && frees[2][ix]) {
			for k, n := range [...]struct{ row, column int }{{1, west}, {1, east}, {0, ix}, {2, ix}} {
				if !frees[n.row][n.column] {
					fixed += float64(weights[k][i] * rows[n.row][n.column])
					hold += weights[k][i]
				}
			}
		}
		d := st.diagonal[ix]
		if p.turn.on {
			d /= p.turn.radius(p.middle(iy, ix, 0, 0))
		}
		residual, b := float64(d*update), float64(d*fixed)
		r.Squares += float64(residual * residual)
		r.Right += float64(b * b)
		r.Sum += float64(whole[i] * update)
		r.Hold += float64(whole[i] * hold)
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
