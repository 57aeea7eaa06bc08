package problem

import (
	"fmt"
	"slices"

	"jacobi/solver"
)

// The sides of the mesh in the order of solver.Walls, and the directions of the neighbours of a point.
const (
	west = iota
	east
	north
	south
)

var sideNames = [4]string{"left", "right", "top", "bottom"}

// side is a side of the mesh.
type side struct {
	// part has the values of a fixed wall, the outward derivative of a Neumann wall, or the g of a Robin wall.
	part
	wall         solver.Wall // Neumann also for a Robin wall
	transfer     part        // the h of a Robin wall, 0 for flux(q); without a key for other walls
	inflow, hold share       // part and transfer as they count on a Neumann or Robin wall
}

// robin reports whether part is a flux, and not a derivative.
func (s *side) robin() bool { return s.transfer.key != "" }

// on reports whether a point lies on a side.
func (p *Problem) on(k, iy, ix int) bool {
	return [4]bool{ix == 0, ix == p.mesh.NX-1, iy == 0, iy == p.mesh.NY-1}[k]
}

// onNeumann reports whether a point lies on a side with a Neumann or Robin wall.
func (p *Problem) onNeumann(k, iy, ix int) bool {
	return p.sides[k].wall == solver.Neumann && p.on(k, iy, ix)
}

// columnsOn returns the columns in which row iy lies on a side.
func (p *Problem) columnsOn(k, iy int) (lo, hi int) {
	switch {
	case k == west:
		return 0, 1
	case k == east:
		return p.mesh.NX - 1, p.mesh.NX
	case p.on(k, iy, 1):
		return 0, p.mesh.NX
	}
	return 0, 0
}

// spacing returns the spacing of the mesh across a side.
func (p *Problem) spacing(k int) float64 {
	if k < north {
		return p.numbers.hx
	}
	return p.numbers.hy
}

// unfixed reports whether no side has values.
func (p *Problem) unfixed() bool {
	return !slices.ContainsFunc(p.sides[:], func(s side) bool { return s.wall == solver.Dirichlet })
}

// transfers reports whether a Robin wall lets something out.
func (p *Problem) transfers() bool {
	return slices.ContainsFunc(p.sides[:], func(s side) bool { return s.robin() && !s.transfer.zero() })
}

// shareSides finds the shares of walls. What a Neumann wall lets in is the product with the coefficient.
func (p *Problem) shareSides() {
	for k := range p.sides {
		s := &p.sides[k]
		q := s.part
		if q.node.spot == nil {
			continue
		}
		if s.robin() {
			s.hold = p.shareOf(s.transfer)
		} else if p.weighted && p.coefficient.covers() && q.node.covers() {
			q.node = multiply(p.coefficient.node, q.node)
		}
		s.inflow = p.shareOf(q)
	}
}

// inflow returns what flows in per length through a Neumann or Robin wall at a point with coefficient a if the field is
// 0 there: a g, or g.
func (p *Problem) inflow(k, iy, ix int, a float64) float64 {
	s := &p.sides[k]
	if s.robin() || p.coefficient.covers() && s.node.covers() && p.weighted {
		a = 1
	}
	return float64(a * p.alongWall(s.inflow, s.part, k, iy, ix))
}

// alongWall returns the mean of an input of a wall over the half spacings to either side of a point, or its value at
// the point where no area has an edge.
func (p *Problem) alongWall(s share, q part, k, iy, ix int) float64 {
	at := func() float64 { return q.node.at(&span{}, iy, ix) }
	if s.values {
		at = func() float64 { return s.node.at(&span{}, iy, ix) }
	}
	if !s.spread {
		return at()
	}
	l, from, to := line{n: s.node, along: true, other: float64(iy)}, 0.0, 0.0
	if k < north {
		l.along, l.other = false, float64(ix)
		from, to = around(iy, p.mesh.NY, p.mesh.PeriodicRows())
	} else {
		from, to = around(ix, p.mesh.NX, p.mesh.PeriodicColumns())
	}
	if !l.jumps(from, to) {
		return at()
	}
	sum := 0.0
	for _, piece := range l.pieces(from, to) {
		share := p.turn.share(l.place(piece.middle()), l.place(halfway(from, to)))
		sum += float64(float64(piece.length()*l.of(piece)) * share)
	}
	mean := sum / (to - from)
	if !s.values {
		mean = float64(mean * at())
	}
	return mean
}

// sideWarnings returns a line for each side whose values have no effect, since it has no material, and for each
// neumann(g) that is no flux. Sides of 0 need none: they are those of a domain that is drawn within the rectangle.
func (p *Problem) sideWarnings() (lines []string) {
	for k := range p.sides {
		switch s := &p.sides[k]; {
		case p.faulty:
		case s.wall == solver.Neumann && !s.robin() && !s.zero():
			if line := p.noFlux(k); line != "" {
				lines = append(lines, line)
			}
		case s.wall == solver.Dirichlet && s.text != "0" && p.Porous() && !p.hasMaterial(k):
			lines = append(lines, fmt.Sprintf("%s %q: the coefficient is 0 along the whole side, so its values "+
				"have no effect", s.key, s.text))
		}
	}
	return lines
}

// noFlux returns a line if the derivative of a side is not what flows in; "" otherwise.
func (p *Problem) noFlux(k int) string {
	if p.coefficient.constant() && p.coefficientAt(0, 0) == 1 {
		return ""
	}
	s := &p.sides[k]
	for iy := range p.mesh.NY {
		for ix, end := p.columnsOn(k, iy); ix < end; ix++ {
			a, g := p.coefficientAt(iy, ix), s.node.at(&span{}, iy, ix)
			if a-a == 0 && a != 0 && a != 1 && g != 0 {
				return fmt.Sprintf("%s %q: it gives du/dn, not the flux a du/dn, which is %.4g at %s, where the "+
					"coefficient is %.4g; flux(q) gives a du/dn = q", s.key, s.text, float64(a*g), p.where(iy, ix), a)
			}
		}
	}
	return ""
}

// hasMaterial reports whether there may be material on a side. A fixed area has the coefficient beside it.
func (p *Problem) hasMaterial(k int) bool {
	fixed := make([]bool, p.mesh.NX)
	for iy := range p.mesh.NY {
		lo, hi := p.columnsOn(k, iy)
		for ix := lo; ix < hi; ix++ {
			if p.coefficientAt(iy, ix) != 0 {
				return true
			}
		}
		if lo < hi && p.Areas() {
			if err := p.GivenRow(iy, fixed); err != nil || slices.Contains(fixed[lo:hi], true) {
				return true
			}
		}
	}
	return false
}
