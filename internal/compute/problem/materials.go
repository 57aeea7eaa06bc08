package problem

import (
	"fmt"
	"math"
	"runtime"

	"jacobi/configs"
	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// materials are the coefficient a and the screening k2 of -div(a grad u) + k2 u = f, and what follows from them.
type materials struct {
	coefficient, screening part
	weighted               bool    // points have weights of their own
	a                      float64 // the coefficient, if they have none
	unit                   int     // see SetMaxima
	contrast               float64 // of the operator
	voids                  bool    // free points have faces without a coefficient
	idle                   idleRows
	edges                  *edgeCache[edged] // of the rows of faces
	crossings              *edgeCache[crossing]
	porous                 bool   // see Porous
	widthless              bool   // fixed areas may be lines without width
	density, absorption    share  // of the source and the screening
	stencils, grounds      firsts // of the rows of a weighted problem
}

// weigh finds out whether points have weights of their own: with coarser levels also where points inside are fixed,
// since only those of a weighted operator leave out what is fixed. If they have none, a divides f and k2, and the
// equation is that of numbers.
func (p *Problem) weigh(g configs.Grid) (err error) {
	p.weighted = p.turn.on || !p.coefficient.constant() || !p.screening.constant() || p.Areas() || p.transfers() ||
		!p.fixed.none() && p.config.Solver.Entry().Levels
	p.porous = !p.coefficient.constant()
	if p.porous && p.coefficient.covers() {
		whole := p.coefficient.node.limit(box{0, float64(p.mesh.NX - 1), 0, float64(p.mesh.NY - 1)})
		p.porous = whole.lo <= 0 || whole.nan
	}
	a, k2 := 1.0, 0.0
	if p.coefficient.constant() {
		a = p.coefficient.node.at(&span{}, 0, 0)
		if !(a >= configs.LeastCoefficient && a <= configs.MostCoefficient) {
			return fmt.Errorf("%s %q: %v; %s", p.coefficient.key, p.coefficient.text, a, constantsAllowed)
		}
	}
	if p.screening.constant() {
		k2 = p.screening.node.at(&span{}, 0, 0)
		if !(k2 >= 0) || math.IsInf(k2, 1) {
			return fmt.Errorf("%s %q: %v; %s", p.screening.key, p.screening.text, k2, screeningAllowed)
		}
	}
	// Nothing determines the constant of a loose problem. Points of problem.fixed that are none on this mesh are a
	// mistake.
	p.loose = p.unfixed() && p.fixed.none() && p.screening.zero() && !p.transfers()
	p.widthless = p.fixed.node.drawn == nil && equality.MatchString(p.fixed.text)
	p.density, p.absorption = p.shareOf(p.source), p.shareOf(p.screening)
	p.shareSides()
	p.idle.places = make([]idlePlace, runtime.GOMAXPROCS(0))
	p.edges, p.crossings = newEdgeCache[edged](2*p.mesh.NY), newEdgeCache[crossing](2*p.mesh.NY)
	if p.weighted {
		p.findRepeats()
		return nil
	}
	p.a = a
	p.numbers, err = newNumbers(p.mesh, g, k2/a)
	return err
}

// What errors allow.
var (
	constantsAllowed = fmt.Sprintf("it must be %g to %g", configs.LeastCoefficient, configs.MostCoefficient)
	valuesAllowed    = fmt.Sprintf("it must be 0, where there is no material, or %g to %g", configs.LeastCoefficient,
		configs.MostCoefficient)
)

const (
	screeningAllowed = "it must be finite and at least 0"
	transferAllowed  = "h must be finite and at least 0"
)

// Weighted reports whether points have weights of their own.
func (p *Problem) Weighted() bool { return p.weighted }

// Porous reports whether there may be points outside the material, where the coefficient is 0.
func (p *Problem) Porous() bool { return p.porous }

// stays reports whether there may be points that keep their values besides those of fixed walls: fixed ones, and those
// outside the material.
func (p *Problem) stays() bool { return !p.fixed.none() || p.Porous() }

// material is a row of the mesh with its coefficients.
type material struct {
	a     []float64
	fixed []bool // points that problem.fixed or the drawing fixes; nil for none
	bare  []bool // of these, points whose a is that of a free neighbour; nil for none
	// first and end are of the columns that have all fixed points; end is 0 for none.
	first, end int
}

// outside reports whether a point lies outside the material. Row iy is one of a fixed wall or of the interior.
func (p *rows) outside(iy, ix int) (bool, error) {
	if !p.Porous() {
		return false, nil
	}
	marks, err := p.outsideMarks(iy)
	return err == nil && marks[ix], err
}

// between returns the coefficient of the face between column ix of m and column jx of n: the harmonic mean of those of
// the two points. A bare one takes that of a neighbour.
func (m *material) between(ix int, n *material, jx int) float64 {
	a, b := m.a[ix], n.a[jx]
	first, second := m.bare != nil && m.bare[ix], n.bare != nil && n.bare[jx]
	switch {
	case first && !second:
		a = b
	case second && !first:
		b = a
	}
	return rowmath.Mean(a, b)
}

// toNext writes the coefficients of the faces to the next column to dst, but for the last one. Between equal
// coefficients a bare point changes nothing.
func (m *material) toNext(dst []float64) {
	last := len(dst) - 1
	rowmath.Means(dst[:last], m.a[:last], m.a[1:])
	for ix := m.first; ix < m.end && m.bare != nil; ix++ {
		if m.bare[ix] && ix > 0 && m.a[ix] != m.a[ix-1] {
			dst[ix-1] = m.between(ix-1, m, ix)
		}
		if m.bare[ix] && ix < last && m.a[ix] != m.a[ix+1] {
			dst[ix] = m.between(ix, m, ix+1)
		}
	}
}

// toRow writes the coefficients of the faces to the points of n to dst.
func (m *material) toRow(n *material, dst []float64) {
	rowmath.Means(dst, m.a, n.a)
	for _, row := range [2]*material{m, n} {
		for ix := row.first; ix < row.end && row.bare != nil; ix++ {
			if row.bare[ix] && m.a[ix] != n.a[ix] {
				dst[ix] = m.between(ix, n, ix)
			}
		}
	}
}

// material returns row iy, which is one of a fixed wall or of the interior.
func (p *rows) material(iy int) (*material, error) {
	if p.weighted {
		iy = p.grounds.of(iy)
	}
	return p.ground.at(iy, &p.idle.grounds, p.newMaterial)
}

// newMaterial works out a row.
func (p *rows) newMaterial(iy int, m *material) error {
	n := p.mesh.NX
	m.a, m.bare, m.first, m.end = sized(m.a, n), nil, n, 0
	if err := p.values(p.coefficient, iy, m.a); err != nil {
		return err
	}
	valid := rowmath.Within(m.a, configs.LeastCoefficient, configs.MostCoefficient) // of the first columns
	for ix, a := range m.a[valid:] {
		if !(a >= configs.LeastCoefficient && a <= configs.MostCoefficient) && a != 0 {
			return p.refuse(p.coefficient, iy, valid+ix, fmt.Sprintf("%v; %s", a, valuesAllowed))
		}
	}
	if p.fixed.none() {
		return nil
	}
	m.fixed = sized(m.fixed, n)
	if err := p.GivenRow(iy, m.fixed); err != nil {
		return err
	}
	areas, wall := p.Areas(), p.fixedWallRow(iy)
	for ix, fixed := range m.fixed {
		if !fixed {
			continue
		}
		m.first, m.end = min(m.first, ix), ix+1
		if (areas || m.a[ix] == 0) && !p.wallColumn(ix) && !wall {
			if m.bare == nil {
				m.bare = make([]bool, n)
			}
			m.bare[ix] = true
		}
	}
	return nil
}

// values writes the values of q at the columns of row iy to dst: an expression or a file with values of float64.
// Periodic columns are copies.
func (p *rows) values(q part, iy int, dst []float64) error {
	s := p.span.at(iy, 0)
	if q.file != nil {
		if err := p.fromFile(q, s, dst); err != nil {
			return err
		}
	} else {
		for ; s.col < len(dst); s.col += chunk {
			q.node.fill(s, dst[s.col:min(len(dst), s.col+chunk)])
			p.worked()
		}
	}
	if n := len(dst); p.mesh.PeriodicColumns() {
		dst[0], dst[n-1] = dst[n-2], dst[1]
	}
	return nil
}

// refuse returns an error about the value of q at a point.
func (p *Problem) refuse(q part, iy, ix int, cause string) error {
	return fmt.Errorf("%s %q at %s: %s", q.key, q.text, p.where(iy, ix), cause)
}

// where names a point.
func (p *Problem) where(iy, ix int) string {
	nx, ny := intervals(p.mesh)
	return fmt.Sprintf("row %d, column %d (x = %g, y = %g)", iy, ix, float64(ix)/nx, float64(iy)/ny)
}

// CoefficientRow writes the coefficient at the points of row iy to dst, as it is given.
func (p *Problem) CoefficientRow(iy int, dst []float64) error {
	r := p.take(iy)
	defer p.give(r)
	iy, _ = p.mesh.Canonical(iy)
	m, err := r.material(iy)
	if err == nil {
		copy(dst, m.a)
	}
	return err
}

// OutsideRow sets dst[ix], 0 <= ix < NX, for the points of row iy that lie outside the material, or in a part of it
// that is left out. Their value is 0, also on walls.
func (p *Problem) OutsideRow(iy int, dst []bool) error {
	clear(dst)
	if !p.Porous() {
		return nil
	}
	r := p.take(iy)
	defer p.give(r)
	iy, _ = p.mesh.Canonical(iy)
	marks, err := r.outsideMarks(iy)
	copy(dst, marks)
	p.markPatches(iy, dst, out)
	return err
}

// wallColumn reports whether column ix is that of a fixed wall.
func (p *Problem) wallColumn(ix int) bool {
	return ix == 0 && p.sides[west].wall == solver.Dirichlet ||
		ix == p.mesh.NX-1 && p.sides[east].wall == solver.Dirichlet
}

// coefficientAt returns the coefficient at a point, or NaN where it cannot be read.
func (p *Problem) coefficientAt(iy, ix int) float64 {
	if p.coefficient.file == nil {
		return p.coefficient.node.at(&span{}, iy, ix)
	}
	a, err := p.coefficient.file.exact(iy, ix)
	if err != nil {
		return math.NaN()
	}
	return a
}
