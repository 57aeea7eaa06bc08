package oracle

import (
	"math"
	"slices"
)

// Materials are the coefficient a and the screening of -div(a grad u) + k2 u = f, and the heat transfers of walls, for
// which Problem.Slopes are the g of a du/dn + h u = g.
type Materials struct {
	Coefficient []float64    // a, by points; 0 where there is no material
	Screening   []float64    // k2, by points, in place of Problem.Screening
	Transfers   [4][]float64 // h along the left, right, top and bottom wall; nil where du/dn is given
}

// weigh computes the weights by the definition in docs/numerics.md.
func (e *Equations) weigh(p Problem, hx, hy float64) {
	e.hx, e.hy = hx, hy
	m, k, n := p.Mesh, p.Materials, len(p.Initial)
	e.weights, e.diagonals = make([][4]float64, n), make([]float64, n)
	e.pulled, e.out, e.turns = make([]bool, n), make([]bool, n), make([]float64, n)
	e.holds = make([]float64, n)
	for at := range n {
		e.turns[at] = p.radius(p.middle(at, hx, hy))
	}
	lo, hi := m.InteriorColumns()
	rows := m.Interior()
	for iy := rows.Lo; iy < rows.Hi; iy++ {
		for ix := lo; ix < hi; ix++ {
			at := iy*m.NX + ix
			if e.free[at] = k.Coefficient[at] > 0 && (p.Fixed == nil || !p.Fixed[at]); !e.free[at] {
				continue
			}
			west, east := beside(ix, m.NX, m.PeriodicColumns())
			north, south := beside(iy, m.NY, m.PeriodicRows())
			g := [4]float64{p.face(at, iy*m.NX+west) / float64(hx*hx), p.face(at, iy*m.NX+east) / float64(hx*hx),
				p.face(at, north*m.NX+ix) / float64(hy*hy), p.face(at, south*m.NX+ix) / float64(hy*hy)}
			x, y := p.middle(at, hx, hy)
			for i, halfway := range []struct{ x, y float64 }{{p.mirrored(ix, -0.5, m.NX) * hx, y},
				{p.mirrored(ix, 0.5, m.NX) * hx, y}, {x, p.mirrored(iy, -0.5, m.NY) * hy},
				{x, p.mirrored(iy, 0.5, m.NY) * hy}} {
				g[i] *= p.radius(halfway.x, halfway.y)
			}
			wall, f := 0.0, 0.0
			if p.Source != nil {
				f = p.Source[at] * e.turns[at]
			}
			for side, s := range [4]struct {
				on      bool
				i       int
				spacing float64
			}{{ix == 0, iy, hx}, {ix == m.NX-1, iy, hx}, {iy == 0, ix, hy}, {iy == m.NY-1, ix, hy}} {
				slope := 0.0
				if p.Slopes[side] != nil && s.on {
					slope = p.Slopes[side][s.i]
				}
				r := p.radius(x, float64(iy)*hy)
				if side < 2 {
					r = p.radius(float64(ix)*hx, y)
				}
				switch h := k.Transfers[side]; {
				case !s.on:
				case h != nil:
					wall += float64(2*h[s.i]) / s.spacing * r
					f += float64(2*slope) / s.spacing * r
				default:
					f += float64(2*k.Coefficient[at]*slope) / s.spacing * r
				}
			}
			e.pulled[at] = k.Screening[at]+wall > 0
			d := ((g[0] + g[1]) + (g[2] + g[3])) + (float64(k.Screening[at]*e.turns[at]) + wall)
			if d == 0 {
				e.b[at] = f
				continue // Settle finds it
			}
			for i := range g {
				e.weights[at][i] = e.round(g[i] / d)
			}
			e.b[at], e.diagonals[at] = e.round(f/d), d
			e.holds[at] = (float64(k.Screening[at]*e.turns[at]) + wall) / d
		}
	}
}

// face returns the coefficient between two neighbours: the harmonic mean. A fixed one without material takes that of
// the free one.
func (p Problem) face(at, beside int) float64 {
	a, b := p.Materials.Coefficient[at], p.Materials.Coefficient[beside]
	if p.Fixed != nil && p.inside(beside) && p.Fixed[beside] && b == 0 {
		b = a
	}
	if a == 0 || b == 0 {
		return 0
	}
	return float64(float64(2*a)*b) / (a + b)
}

// inside reports whether a point is none of a fixed wall.
func (p Problem) inside(at int) bool {
	lo, hi := p.Mesh.InteriorColumns()
	rows, ix, iy := p.Mesh.Interior(), at%p.Mesh.NX, at/p.Mesh.NX
	return ix >= lo && ix < hi && iy >= rows.Lo && iy < rows.Hi
}

// part is free points that hang together.
type part struct {
	points               []int
	held, pulled, driven bool // by points that are given, by a screening or a Robin wall, by a source
}

// parts returns the parts of the material.
func (e *Equations) parts() (parts []part) {
	seen := make([]bool, len(e.free))
	for start := range seen {
		if seen[start] || !e.free[start] {
			continue
		}
		seen[start] = true
		g := part{points: []int{start}}
		for k := 0; k < len(g.points); k++ {
			from := g.points[k]
			for _, c := range e.couplings(from%e.mesh.NX, from/e.mesh.NX) {
				switch {
				case c.w[0] == 0:
				case !e.free[c.at]:
					g.held = true
				case !seen[c.at]:
					seen[c.at] = true
					g.points = append(g.points, c.at)
				}
			}
			g.pulled = g.pulled || e.pulled != nil && e.pulled[from]
			g.driven = g.driven || e.b[from] != 0
		}
		parts = append(parts, g)
	}
	return parts
}

// Settle gives the parts of the material that no value holds what docs/numerics.md says: those without a source have
// the field 0, and lie outside where no screening or transfer holds them. It returns what the error of a problem that
// is refused says, or "".
func (e *Equations) Settle() (refused string) {
	parts := e.parts()
	has := func(is func(part) bool) bool { return slices.ContainsFunc(parts, is) }
	solved := has(func(g part) bool { return g.held || g.driven })
	holds := has(func(g part) bool { return g.held || g.pulled })
	switch {
	case len(parts) == 0:
		return "no point is free"
	case has(func(g part) bool { return g.driven && !g.held && !g.pulled }) && holds:
		return "nothing takes it up"
	case !holds:
		return "any constant can be added"
	}
	for _, g := range parts {
		for _, at := range g.points {
			if !g.held && !g.driven && (solved || !g.pulled) {
				e.free[at], e.initial[at], e.out[at] = false, 0, !g.pulled
			}
		}
	}
	return ""
}

// radius returns the distance of a place from the axis; 1 without one.
func (p Problem) radius(x, y float64) float64 {
	switch p.Axis {
	case "left":
		return x
	case "right":
		return p.Width - x
	case "top":
		return y
	case "bottom":
		return p.Height - y
	}
	return 1
}

// middle returns the middle of the part of the mesh that is a point's.
func (p Problem) middle(at int, hx, hy float64) (x, y float64) {
	inside := func(i, n int, periodic bool) float64 {
		switch {
		case i == 0 && !periodic:
			return 0.25
		case i == n-1 && !periodic:
			return float64(i) - 0.25
		}
		return float64(i)
	}
	m := p.Mesh
	return inside(at%m.NX, m.NX, m.PeriodicColumns()) * hx, inside(at/m.NX, m.NY, m.PeriodicRows()) * hy
}

// mirrored returns the place of the face beside point i of n, which beyond an end is that of the mirror point.
func (p Problem) mirrored(i int, by float64, n int) float64 {
	if at := float64(i) + by; at < 0 || at > float64(n-1) {
		return float64(i) - by
	}
	return float64(i) + by
}

// Residual returns the 2-norm of b - A u, in units of the source, and the largest diagonal of A.
func (e *Equations) Residual(u []float64) (norm, diagonal float64) {
	squares := 0.0
	for at, d := range e.Defect(u) {
		own := e.diagonals[at] / e.turns[at]
		r := d * own
		squares, diagonal = squares+r*r, max(diagonal, own)
	}
	return math.Sqrt(squares), diagonal
}

// Remainder returns what the fluxes through walls and fixed points of the field u add up to: the defects of all
// equations as fluxes, less the integral of f - k2 u over the cells with a free corner. size is the sum of the sizes of
// what is rounded.
func (e *Equations) Remainder(p Problem, u []float64) (sum, size float64) {
	add := func(v, rounded float64) {
		sum, size = sum+v, size+rounded
	}
	for at, d := range e.Defect(u) {
		if e.free[at] {
			area := e.weight(at) * e.hx * e.hy
			add(area*d, area*math.Abs(u[at]))
		}
	}
	m := p.Mesh
	for iy := range m.NY - 1 {
		for ix := range m.NX - 1 {
			if m.PeriodicColumns() && ix == 0 || m.PeriodicRows() && iy == 0 {
				continue
			}
			at := iy*m.NX + ix
			corners := []int{at, at + 1, at + m.NX, at + m.NX + 1}
			if !slices.ContainsFunc(corners, func(at int) bool { return e.free[e.original(at)] }) {
				continue
			}
			for _, at := range corners {
				at = e.original(at)
				if !e.free[at] && (p.Materials.Coefficient[at] == 0 || e.out[at]) && (p.Fixed == nil || !p.Fixed[at]) &&
					p.inside(at) {
					continue // no material
				}
				f, k := 0.0, float64(p.Materials.Screening[at]*u[at])
				if p.Source != nil {
					f = p.Source[at]
				}
				quarter := e.hx * e.hy / 4 * e.turns[at]
				add(-float64((f-k)*quarter), (math.Abs(f)+math.Abs(k))*quarter)
			}
		}
	}
	if p.Axis != "" {
		sum, size = 2*math.Pi*sum, 2*math.Pi*size
	}
	return sum, size
}

// original returns the point that a periodic one is a copy of, or the point itself.
func (e *Equations) original(at int) int {
	m, ix, iy := e.mesh, at%e.mesh.NX, at/e.mesh.NX
	switch {
	case m.PeriodicColumns() && ix == 0:
		ix = m.NX - 2
	case m.PeriodicColumns() && ix == m.NX-1:
		ix = 1
	}
	switch {
	case m.PeriodicRows() && iy == 0:
		iy = m.NY - 2
	case m.PeriodicRows() && iy == m.NY-1:
		iy = 1
	}
	return iy*m.NX + ix
}

// ByDifferences makes the equations those of the faces themselves: the weights of a point and what holds it add up to 1
// exactly, which their roundings do not.
func (e *Equations) ByDifferences() { e.held = e.holds }
