package problem

import (
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// WallFlux returns a du/dn at a point of a Neumann or Robin wall if the field is u there: a g, or g - h u. Walls are
// numbered in the order of solver.Walls. Nothing flows where there is no material.
func (p *Problem) WallFlux(wall, iy, ix int, u float64) (float64, error) {
	q, s := []part{p.left, p.right, p.top, p.bottom}[wall], &span{}
	g := q.node.at(s, iy, ix)
	if err := p.finite(q, iy, ix, g); err != nil {
		return 0, err
	}
	a := p.a
	if p.weighted {
		s.row, s.col = iy, ix
		var value [1]float64
		if p.coefficient.file == nil {
			value[0] = p.coefficient.node.at(s, iy, ix)
		} else if err := p.fromFile(p.coefficient, s, value[:]); err != nil {
			return 0, err
		}
		a = value[0]
	}
	if h := p.transfers[wall]; h.key != "" && a != 0 {
		return g - float64(h.node.at(s, iy, ix)*u), nil
	}
	return float64(a * g), nil
}

// Materials returns the coefficients for results; nil if they are 1, and the screening is the same everywhere.
func (p *Problem) Materials() results.Materials {
	if !p.weighted && p.a == 1 {
		return nil
	}
	return p
}

// Given yields the points that problem.fixed or the drawing fixes; nil for none.
func (p *Problem) Given() solver.FixedRows {
	if p.fixed.none() {
		return nil
	}
	return given{p}
}

type given struct{ p *Problem }

// FixedRow implements solver.FixedRows.
func (g given) FixedRow(iy int, dst []bool) error { return g.p.GivenRow(iy, dst) }

// Faces implements results.Materials.
func (p *Problem) Faces(iy int, east, north []float64) error {
	here, err := p.material(iy)
	if err != nil {
		return err
	}
	here.toNext(east)
	if iy == 0 {
		return nil
	}
	above, err := p.beside(iy-1, iy-1)
	if err == nil {
		here.toRow(above, north)
	}
	return err
}

// Screenings implements results.Materials. Outside the material a screening need not be finite.
func (p *Problem) Screenings(iy int, dst []float64) error {
	if err := p.values(p.screening, iy, dst); err != nil {
		return err
	}
	for ix, k2 := range dst {
		if k2-k2 == 0 { // finite
			continue
		}
		outside, err := p.outside(iy, ix)
		if err != nil {
			return err
		}
		if outside {
			dst[ix] = 0
		}
	}
	return nil
}

// RightHandSide writes f at the points of row iy from column col on to dst. At fixed walls, where no sweep needs it, it
// need not be finite.
func (p *Problem) RightHandSide(iy, col int, dst []float64) error {
	s := &span{row: iy, col: col}
	if p.source.file == nil {
		p.source.node.fill(s, dst)
		return nil
	}
	return p.fromFile(p.source, s, dst)
}
