package problem

import (
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// WallFlux returns a du/dn at a point of a Neumann or Robin wall if the field is u there: a g, or g - h u. Walls are
// numbered in the order of solver.Walls. Nothing flows where there is no material.
func (p *Problem) WallFlux(wall, iy, ix int, u float64) (float64, error) {
	s := &p.sides[wall]
	if err := p.finite(s.part, iy, ix, s.node.at(&span{}, iy, ix)); err != nil {
		return 0, err
	}
	r := p.take(iy)
	defer p.give(r)
	if outside, err := r.outside(iy, ix); err != nil || outside {
		return 0, err
	}
	a := p.a
	if p.weighted {
		here, err := r.material(iy)
		if err != nil {
			return 0, err
		}
		a = here.a[ix]
	}
	flow := p.inflow(wall, iy, ix, a)
	if s.robin() {
		flow -= float64(p.alongWall(s.hold, s.transfer, wall, iy, ix) * u)
	}
	return flow, nil
}

// Areas reports whether areas are fixed: of a fixed point, f, k2 and the inflow of a wall are means over what is free
// in its square, or along the wall.
func (p *Problem) Areas() bool { return p.fixed.covers() && !p.fixed.none() }

// Joined reports whether there is only fixed area between two places, as far as three of them show.
func (p *Problem) Joined(a, b [2]float64) bool {
	for _, part := range [...]float64{0.25, 0.5, 0.75} {
		s := spot{x: a[0] + float64(part*(b[0]-a[0])), y: a[1] + float64(part*(b[1]-a[1]))}
		if p.fixed.node.spot(&s) == 0 {
			return false
		}
	}
	return true
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

// FixedRow implements solver.FixedRows. Who reads it wants the faces of the row, too, which take its fixed points.
func (g given) FixedRow(iy int, dst []bool) error {
	if !g.p.weighted {
		return g.p.GivenRow(iy, dst)
	}
	r := g.p.take(iy)
	defer g.p.give(r)
	iy, _ = g.p.mesh.Canonical(iy)
	m, err := r.material(iy)
	if err == nil {
		copy(dst, m.fixed)
	}
	return err
}

// Faces implements results.Materials.
func (p *Problem) Faces(iy int, dst *results.Faces) error {
	if !p.weighted {
		for ix := range dst.East {
			dst.East[ix], dst.North[ix] = p.a, p.a
		}
		return nil
	}
	r := p.take(iy)
	defer p.give(r)
	f, err := r.faces(iy)
	if err != nil {
		return err
	}
	copy(dst.East, f.east)
	dst.LiftEast, dst.PinEast, dst.LiftNorth, dst.PinNorth = f.liftX, f.pinX, nil, nil
	if iy == 0 {
		clear(dst.North)
		return nil
	}
	above, err := r.above(iy)
	if err == nil {
		copy(dst.North, above.south)
		dst.LiftNorth, dst.PinNorth = above.liftY, above.pinY
	}
	return err
}

// Screenings implements results.Materials. Outside the material a screening need not be finite.
func (p *Problem) Screenings(iy int, dst []float64) error {
	if p.screening.zero() {
		clear(dst)
		return nil
	}
	r := p.take(iy)
	defer p.give(r)
	if err := r.values(p.screening, iy, dst); err != nil {
		return err
	}
	if err := r.overSquares(p.absorption, iy, 0, dst); err != nil {
		return err
	}
	for ix, k2 := range dst {
		if k2-k2 == 0 { // finite
			continue
		}
		outside, err := r.outside(iy, ix)
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
	if p.source.zero() {
		clear(dst)
		p.lessTaken(dst)
		return nil
	}
	r := p.take(iy)
	defer p.give(r)
	s := r.span.at(iy, col)
	if p.source.file == nil {
		p.source.node.fill(s, dst)
	} else if err := p.fromFile(p.source, s, dst); err != nil {
		return err
	}
	err := r.overSquares(p.density, iy, col, dst)
	p.lessTaken(dst)
	return err
}
