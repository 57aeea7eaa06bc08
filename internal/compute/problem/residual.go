package problem

// Residual returns the sums of squares of b - A u and of b over those points of row iy that a sweep of a weighted
// operator updates. A is the matrix of the equations in units of the source; b has the source, the walls' derivatives
// and the values of points that no sweep updates. above, here and below are rows of the field u; one beyond a Neumann
// wall is nil.
func (p *Problem) Residual(iy int, above, here, below []float64) (residual, right float64, err error) {
	rows, stencils := [3][]float64{above, here, below}, [3]*stencil{}
	for i := range rows {
		y := iy - 1 + i
		if rows[i] == nil {
			rows[i], y = rows[2-i], iy+1-i
		}
		y, _ = p.mesh.Canonical(y)
		if stencils[i], err = p.stencil(y); err != nil {
			return 0, 0, err
		}
	}
	st := stencils[1]
	for ix, free := range st.free {
		if !free {
			continue
		}
		west, east := p.columnsBeside(ix)
		u, update, fixed := here[ix], st.b[ix]-float64(st.hold[ix]*here[ix]), st.b[ix]
		for k, n := range [...]struct{ row, column int }{{1, west}, {1, east}, {0, ix}, {2, ix}} {
			v, weight := rows[n.row][n.column], st.weights[k][ix]
			update += float64(weight * (v - u)) // rounded less than weight v - u would be
			if !stencils[n.row].free[n.column] {
				fixed += float64(weight * v)
			}
		}
		r, b := float64(st.diagonal[ix]*update), float64(st.diagonal[ix]*fixed)
		residual += float64(r * r)
		right += float64(b * b)
	}
	return residual, right, nil
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
