package problem

import (
	"fmt"
	"math"

	"jacobi/solver"
)

// stencil is the equations of the points of a row: D u = (gW u_W + gE u_E) + (gN u_N + gS u_S) + rhs, divided by D
// (docs/numerics.md). Columns that no sweep updates have weights of 0.
type stencil struct {
	weights     [4][]float64 // gW/D, gE/D, gN/D, gS/D
	b           []float64    // rhs/D
	diagonal    []float64    // D
	east, south []float64    // coefficients of the faces to the next column and row; 0 without one
	free        []bool       // points that a sweep updates
	held        []bool       // of these, points beside one that keeps a value
	hold        []float64    // the part of D that the screening and Robin walls contribute, divided by D
	outside     int64        // points of the interior without material
	weakest     float64      // the least coefficient above 0 of a face of a free point; infinite without one
	open        bool         // a free point has a face without a coefficient
}

// stencil returns the stencil of row iy, which is canonical.
func (p *Problem) stencil(iy int) (*stencil, error) {
	return p.rows.at(p.stencils.of(iy), p.newStencil)
}

// newStencil works out the stencil of a row.
func (p *Problem) newStencil(iy int) (*stencil, error) {
	here, err := p.material(iy)
	if err != nil {
		return nil, err
	}
	n, ny := p.mesh.NX, p.mesh.NY
	all := make([]float64, 10*n)
	take := func() (row []float64) {
		row, all = all[:n:n], all[n:]
		return row
	}
	st := &stencil{b: take(), diagonal: take(), east: take(), south: take(), hold: take(), free: make([]bool, n),
		held: make([]bool, n), weakest: math.Inf(1)}
	for i := range st.weights {
		st.weights[i] = take()
	}
	for ix := range n - 1 {
		st.east[ix] = here.between(ix, here, ix+1)
	}
	var above, below *material
	north := take()
	if y := iy + 1; y < ny || p.mesh.Walls.Bottom == solver.Neumann {
		if below, err = p.beside(y, iy-1); err != nil {
			return nil, err
		}
		for ix := range n {
			st.south[ix] = here.between(ix, below, ix)
		}
	}
	if p.fixedWallRow(iy) {
		return st, nil
	}
	if above, err = p.beside(iy-1, iy+1); err != nil {
		return nil, err
	}
	for ix := range n {
		north[ix] = here.between(ix, above, ix)
	}
	lo, hi := p.mesh.InteriorColumns()
	for ix := lo; ix < hi; ix++ {
		st.free[ix] = here.a[ix] != 0 && (here.fixed == nil || !here.fixed[ix])
		if here.outside(ix) {
			st.outside++
		}
	}
	if err := p.weights(iy, st, here, north); err != nil {
		return nil, err
	}
	p.markHeld(iy, st, [3]*material{above, here, below}, north)
	if iy == ny-1 {
		clear(st.south) // the mirror's
	}
	return st, nil
}

// beside returns the row iy beside another one; beyond a Neumann wall that is the mirror row.
func (p *Problem) beside(iy, mirror int) (*material, error) {
	if iy < 0 || iy >= p.mesh.NY {
		iy = mirror
	}
	iy, _ = p.mesh.Canonical(iy)
	return p.material(iy)
}

// weights computes the weights, the diagonal and the source of the free points of row iy. north are the coefficients of
// the faces to the row above.
func (p *Problem) weights(iy int, st *stencil, here *material, north []float64) error {
	lo, hi := p.mesh.InteriorColumns()
	s := &span{row: iy, col: lo}
	if err := p.rightHandSide(s, st.b[lo:hi]); err != nil {
		return err
	}
	k2, last := st.hold, p.mesh.NX-1
	if err := p.values(p.screening, iy, k2); err != nil {
		return err
	}
	if err := p.wallTerms(iy, st, here); err != nil {
		return err
	}
	x, y := float64(p.numbers.hx*p.numbers.hx), float64(p.numbers.hy*p.numbers.hy)
	for ix := range p.mesh.NX {
		if !st.free[ix] {
			st.b[ix], k2[ix] = 0, 0
			continue
		}
		if k := k2[ix]; !(k >= 0) || math.IsInf(k, 1) {
			return p.refuse(p.screening, iy, ix, fmt.Sprintf("%v; %s", k, screeningAllowed))
		}
		west, east := ix-1, ix
		switch ix {
		case 0:
			west = 0
		case last:
			east = last - 1
		}
		w, e, n, s := st.east[west]/x, st.east[east]/x, north[ix]/y, st.south[ix]/y
		for _, c := range [4]float64{st.east[west], st.east[east], north[ix], st.south[ix]} {
			if c > 0 {
				st.weakest = min(st.weakest, c)
			} else {
				st.open = true
			}
		}
		hold := k2[ix] + st.diagonal[ix] // what wallTerms has left there
		d := float64((w+e)+(n+s)) + hold
		if d == 0 { // alone among points without material: CheckIslands refuses it
			st.b[ix], st.hold[ix] = 0, 0
			continue
		}
		for i, g := range [4]float64{w, e, n, s} {
			st.weights[i][ix] = g / d
		}
		st.diagonal[ix], st.hold[ix], st.b[ix] = d, hold/d, st.b[ix]/d
		if r := p.round(st.b[ix]); math.IsNaN(r) || math.IsInf(r, 0) {
			return fmt.Errorf("%s %q at row %d, column %d: it adds %g a sweep, too large for %v", p.source.key,
				p.source.text, iy, ix, st.b[ix], p.mesh.DType)
		}
	}
	return nil
}

// wallTerms adds what Neumann and Robin walls contribute to rhs in st.b, and what Robin walls contribute to D in
// st.diagonal.
func (p *Problem) wallTerms(iy int, st *stencil, here *material) error {
	w, last := p.mesh.Walls, p.mesh.NX-1
	for i, side := range []struct {
		wall solver.Wall
		part part
		on   bool
	}{{w.Left, p.left, true}, {w.Right, p.right, true}, {w.Top, p.top, iy == 0},
		{w.Bottom, p.bottom, iy == p.mesh.NY-1}} {
		if side.wall != solver.Neumann || !side.on {
			continue
		}
		from, to, spacing := 0, p.mesh.NX, p.numbers.hy
		if i < 2 {
			from, spacing = i*last, p.numbers.hx
			to = from + 1
		}
		s := &span{}
		for ix := from; ix < to; ix++ {
			if !st.free[ix] {
				continue
			}
			g := side.part.node.at(s, iy, ix)
			if err := p.finite(side.part, iy, ix, g); err != nil {
				return err
			}
			transfer := p.transfers[i]
			if transfer.key == "" {
				st.b[ix] += float64(float64(2*here.a[ix])*g) / spacing
				continue
			}
			h := transfer.node.at(s, iy, ix)
			if !(h >= 0) || math.IsInf(h, 1) {
				return p.refuse(transfer, iy, ix, fmt.Sprintf("%v; %s", h, transferAllowed))
			}
			st.diagonal[ix] += float64(2*h) / spacing
			st.b[ix] += float64(2*g) / spacing
		}
	}
	return nil
}

// markHeld marks the free points of row iy that have a neighbour which keeps a value.
func (p *Problem) markHeld(iy int, st *stencil, rows [3]*material, north []float64) {
	keeps := func(m *material, row, ix int) bool {
		return m.fixed != nil && m.fixed[ix] || p.wallColumn(ix) || p.wallRow(row)
	}
	here, last := rows[1], p.mesh.NX-1
	first, step := 0, 1
	if p.fixed.none() && !p.wallRow(iy-1) && !p.wallRow(iy+1) { // columns beside walls are left
		first, step = 1, max(1, last-2)
	}
	for ix := first; ix <= last; ix += step {
		if !st.free[ix] {
			continue
		}
		st.held[ix] = ix > 0 && st.east[ix-1] > 0 && keeps(here, iy, ix-1) ||
			ix < last && st.east[ix] > 0 && keeps(here, iy, ix+1) ||
			north[ix] > 0 && keeps(rows[0], iy-1, ix) || st.south[ix] > 0 && keeps(rows[2], iy+1, ix)
	}
}

// wallRow reports whether row iy is that of a fixed wall. Rows beyond the mesh are none.
func (p *Problem) wallRow(iy int) bool {
	w := p.mesh.Walls
	return iy == 0 && w.Top == solver.Dirichlet || iy == p.mesh.NY-1 && w.Bottom == solver.Dirichlet
}
