package problem

import (
	"slices"

	"jacobi/solver"
)

// Rows that are known to be the same as the row above are worked out once. Known are those of expressions without y and
// iy, and those of a picture that has fewer rows than the mesh.

// same reports whether the values of q in row iy are known to be those of row iy-1.
func (p *Problem) same(q part, iy int) bool {
	return q.file == nil && !q.node.onY && (q.node.drawn == nil || q.node.drawn.repeats(iy))
}

// sameFixed reports whether the fixed points of row iy are known to be those of row iy-1.
func (p *Problem) sameFixed(iy int) bool {
	return p.same(p.fixed.part, iy)
}

// sameSides reports whether the values of left and right walls of a kind in row iy are known to be those of row iy-1.
func (p *Problem) sameSides(kind solver.Wall) bool {
	return !slices.ContainsFunc(p.sides[:north], func(s side) bool {
		return s.wall == kind && (s.node.onY || s.transfer.node.onY)
	})
}

// between reports whether row iy and the one above are neighbours inside the mesh, and returns row iy of the interior
// if rows are periodic.
func (p *Problem) between(iy int) (canonical int, ok bool) {
	above, _ := p.mesh.Canonical(iy - 1)
	here, _ := p.mesh.Canonical(iy)
	return here, iy > 0 && iy < p.mesh.NY && here == above+1 && !p.fixedWallRow(above) && !p.fixedWallRow(here)
}

// samePatches reports whether row iy has the same patches of islands as row iy-1.
func (p *Problem) samePatches(iy int) bool {
	return p.patches == nil || slices.Equal(p.patches[iy], p.patches[iy-1])
}

// RowRepeats implements solver.RowRepeater.
func (p *Problem) RowRepeats(iy int) bool {
	here, ok := p.between(iy)
	return ok && p.same(p.initial, here) && p.sameSides(solver.Dirichlet) && (!p.copiesFix() || p.sameFixed(here)) &&
		(!p.Porous() || p.same(p.coefficient, here) && p.sameFixed(here) && p.samePatches(here))
}

// ValueRepeats implements solver.ValueRepeater.
func (p *Problem) ValueRepeats(iy int, k solver.Value) bool {
	here, ok := p.between(iy)
	switch {
	case !ok:
		return false
	case k == solver.Coefficient:
		return p.grounds.of(here) == p.grounds.of(here-1)
	case p.weighted && (k != solver.RightHandSide || !p.fixed.none() || p.porous || p.inflows()):
		return p.stencils.of(here) == p.stencils.of(here-1)
	}
	w := p.mesh.Walls // the sources of the first and the last row count the walls beside them
	return !(w.Top == solver.Neumann && here == 1) && !(w.Bottom == solver.Neumann && here == p.mesh.NY-1) &&
		p.same(p.source, here) && p.sameSides(solver.Neumann)
}

// inflows reports whether anything flows in through the left or the right wall. How much may depend on the coefficient.
func (p *Problem) inflows() bool {
	return slices.ContainsFunc(p.sides[:north], func(s side) bool { return s.wall == solver.Neumann && !s.zero() })
}

// RowRepeats implements solver.RowRepeater.
func (m Masked) RowRepeats(iy int) bool {
	here, ok := m.between(iy)
	return ok && m.Problem.RowRepeats(iy) && m.sameFixed(here)
}

// firsts has, by row, the first of the rows up to it that are known to be the same.
type firsts []int32

// of returns the first of the rows that are the same as row iy.
func (f firsts) of(iy int) int { return int(f[iy]) }

// newFirsts returns the firsts of n rows. same reports whether row iy is the same as row iy-1.
func newFirsts(n int, same func(iy int) bool) firsts {
	f := make(firsts, n)
	for iy := 1; iy < n; iy++ {
		if f[iy] = int32(iy); same(iy) {
			f[iy] = f[iy-1]
		}
	}
	return f
}

// findRepeats finds the rows of a weighted problem whose coefficients and whose equations are the same. The equations
// of a row follow from the coefficients of the rows beside it, too, and from walls.
func (p *Problem) findRepeats() {
	ny, along := p.mesh.NY, !p.turn.on || p.turn.x // rows have the same r
	p.grounds = newFirsts(ny, func(iy int) bool {  // errors name row 1 before the row of a wall
		return along && iy > 1 && p.same(p.coefficient, iy) && p.sameFixed(iy) && (!p.Areas() || p.same(p.initial, iy))
	})
	p.stencils = newFirsts(ny, func(iy int) bool {
		return iy > 2 && iy < ny-2 && p.grounds.of(iy+1) == p.grounds.of(iy-2) && p.same(p.source, iy) &&
			p.same(p.screening, iy) && p.sameSides(solver.Neumann)
	})
}
