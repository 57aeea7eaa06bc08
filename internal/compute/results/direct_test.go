package results

import (
	"fmt"

	"jacobi/solver"
)

// direct works the results out from their definitions, without ranks.
type direct struct {
	world
	owner  []string // of each point: a wall, "region N" by its first point or its name, "" for a free one
	flux   map[string]float64
	made   float64 // the integral of f - k2 u over the cells with a free corner
	energy float64
	mean   float64
}

func newDirect(w world) *direct {
	d := &direct{world: w, owner: make([]string, len(w.values)), flux: map[string]float64{}}
	m := w.mesh
	for iy := range m.NY {
		for ix := range m.NX {
			i := iy*m.NX + ix
			switch {
			case iy == 0 && m.Walls.Top == solver.Dirichlet:
				d.owner[i] = "top"
			case iy == m.NY-1 && m.Walls.Bottom == solver.Dirichlet:
				d.owner[i] = "bottom"
			case ix == 0 && m.Walls.Left == solver.Dirichlet:
				d.owner[i] = "left"
			case ix == m.NX-1 && m.Walls.Right == solver.Dirichlet:
				d.owner[i] = "right"
			case w.fixed != nil && w.fixed[i] && w.names != nil:
				d.owner[i] = "region " + w.names[w.Region(iy, ix)]
			case w.fixed != nil && w.fixed[i]:
				d.owner[i] = fmt.Sprintf("region %d", i)
			}
		}
	}
	d.spread()
	d.integrate()
	d.walls()
	d.cells()
	d.corners()
	return d
}

// ring maps a place beyond a periodic end, or on a copy, to the place that it copies.
func ring(i, n int, periodic bool) int {
	if periodic {
		return 1 + (i-1+n-2)%(n-2)
	}
	return i
}

// spread gives connected regions the name of their first point, until nothing changes.
func (d *direct) spread() {
	m := d.mesh
	name := func(s string) (n int) {
		if _, err := fmt.Sscanf(s, "region %d", &n); err != nil {
			return -1
		}
		return n
	}
	for again := true; again; {
		again = false
		d.edges(func(_ bool, a, b int, _ float64) {
			x, y := name(d.owner[a]), name(d.owner[b])
			if x >= 0 && y >= 0 && x != y {
				d.owner[a] = fmt.Sprintf("region %d", min(x, y))
				d.owner[b] = d.owner[a]
				again = true
			}
		})
	}
	_ = m
}

// edges calls do for each pair of neighbours, copies left out, with the length of the face between them over their
// distance; a face at the end of the mesh has half the length.
func (d *direct) edges(do func(horizontal bool, a, b int, weight float64)) {
	m := d.mesh
	half := func(i, n int, periodic bool) float64 {
		if !periodic && (i == 0 || i == n-1) {
			return 0.5
		}
		return 1
	}
	px, py := m.PeriodicColumns(), m.PeriodicRows()
	for iy := range m.NY {
		for ix := range m.NX {
			if ring(ix, m.NX, px) != ix || ring(iy, m.NY, py) != iy {
				continue
			}
			if ix+1 < m.NX {
				do(true, iy*m.NX+ix, iy*m.NX+ring(ix+1, m.NX, px), half(iy, m.NY, py)*hy/hx)
			}
			if iy+1 < m.NY {
				do(false, iy*m.NX+ix, ring(iy+1, m.NY, py)*m.NX+ix, half(ix, m.NX, px)*hx/hy)
			}
		}
	}
}

func (d *direct) integrate() {
	m := d.mesh
	d.edges(func(_ bool, a, b int, weight float64) {
		step := d.values[a] - d.values[b]
		d.energy += weight * step * step / 2
		switch {
		case d.owner[a] != "" && d.owner[b] == "":
			d.flux[d.owner[a]] += weight * step
		case d.owner[b] != "" && d.owner[a] == "":
			d.flux[d.owner[b]] -= weight * step
		}
	})
	area := 0.0
	for iy := range m.NY {
		for ix := range m.NX {
			if ring(ix, m.NX, m.PeriodicColumns()) != ix || ring(iy, m.NY, m.PeriodicRows()) != iy {
				continue
			}
			wx, wy := 1.0, 1.0
			if !m.PeriodicColumns() && (ix == 0 || ix == m.NX-1) {
				wx = 0.5
			}
			if !m.PeriodicRows() && (iy == 0 || iy == m.NY-1) {
				wy = 0.5
			}
			v := d.at(ix, iy)
			d.energy += d.k2 * wx * wy * hx * hy * v * v / 2
			d.mean += wx * wy * v
			area += wx * wy
		}
	}
	d.mean /= area
}

// walls integrates the derivatives of Neumann walls over all pairs of neighbours in them with a free point.
func (d *direct) walls() {
	m := d.mesh
	d.edges(func(horizontal bool, a, b int, _ float64) {
		for _, side := range []struct {
			name string
			wall solver.Wall
			here bool
			half float64
		}{{"left", m.Walls.Left, !horizontal && a%m.NX == 0, hy / 2},
			{"right", m.Walls.Right, !horizontal && a%m.NX == m.NX-1, hy / 2},
			{"top", m.Walls.Top, horizontal && a/m.NX == 0, hx / 2},
			{"bottom", m.Walls.Bottom, horizontal && a/m.NX == m.NY-1, hx / 2}} {
			if side.wall != solver.Neumann || !side.here || d.owner[a] != "" && d.owner[b] != "" {
				continue
			}
			for _, i := range []int{a, b} {
				g, _ := d.Derivative(0, i/m.NX, i%m.NX)
				d.flux[side.name] += g * side.half
				if d.owner[i] != "" {
					d.flux[d.owner[i]] -= g * side.half
				}
			}
		}
	})
}

// cells integrates f - k2 u over the cells with a free corner, each by its corners.
func (d *direct) cells() {
	m := d.mesh
	px, py := m.PeriodicColumns(), m.PeriodicRows()
	for iy := range m.NY - 1 {
		for ix := range m.NX - 1 {
			if px && ix == 0 || py && iy == 0 {
				continue
			}
			var corners []int
			free := false
			for _, c := range [][2]int{{ix, iy}, {ix + 1, iy}, {ix, iy + 1}, {ix + 1, iy + 1}} {
				i := ring(c[1], m.NY, py)*m.NX + ring(c[0], m.NX, px)
				corners = append(corners, i)
				free = free || d.owner[i] == ""
			}
			for _, i := range corners {
				made := (d.f(i%m.NX, i/m.NX) - d.k2*d.values[i]) * hx * hy / 4
				if free {
					d.made += made
				}
				if free && d.owner[i] != "" {
					d.flux[d.owner[i]] -= made
				}
			}
		}
	}
}

// corners gives the walls beside a corner between fixed walls what passes through half a spacing of each of them.
func (d *direct) corners() {
	m := d.mesh
	for _, h := range []struct {
		name    string
		wall    solver.Wall
		ix, one int
	}{{"left", m.Walls.Left, 0, 1}, {"right", m.Walls.Right, m.NX - 1, -1}} {
		for _, v := range []struct {
			name    string
			wall    solver.Wall
			iy, one int
		}{{"top", m.Walls.Top, 0, 1}, {"bottom", m.Walls.Bottom, m.NY - 1, -1}} {
			free := d.owner[(v.iy+v.one)*m.NX+h.ix+h.one] == ""
			if h.wall != solver.Dirichlet || v.wall != solver.Dirichlet || !free {
				continue
			}
			u := d.at(h.ix, v.iy)
			flux := hy/(2*hx)*(u-d.at(h.ix+h.one, v.iy)) - hx/(2*hy)*(u-d.at(h.ix, v.iy+v.one)) -
				(d.f(h.ix, v.iy)-d.k2*u)*hx*hy/8
			d.flux[h.name] += flux
			d.flux[v.name] -= flux
		}
	}
}

// remainder returns what is missing from the five-point equations of all free points together, times the areas that
// belong to them: 0 at the solution.
func (d *direct) remainder() (sum float64) {
	m := d.mesh
	area := make([]float64, len(d.values)) // of the cells around a point
	d.edges(func(horizontal bool, a, b int, weight float64) {
		if horizontal {
			area[a] += weight * hx * hx / 2
			area[b] += weight * hx * hx / 2
		}
		step := weight * (d.values[b] - d.values[a])
		for i, out := range map[int]float64{a: step, b: -step} {
			if d.owner[i] == "" {
				sum += out
			}
		}
		for _, side := range []struct {
			wall solver.Wall
			here bool
			half float64
		}{{m.Walls.Left, !horizontal && a%m.NX == 0, hy / 2}, {m.Walls.Right, !horizontal && a%m.NX == m.NX-1, hy / 2},
			{m.Walls.Top, horizontal && a/m.NX == 0, hx / 2},
			{m.Walls.Bottom, horizontal && a/m.NX == m.NY-1, hx / 2}} {
			for _, i := range []int{a, b} {
				if side.wall == solver.Neumann && side.here && d.owner[i] == "" {
					g, _ := d.Derivative(0, i/m.NX, i%m.NX)
					sum += g * side.half
				}
			}
		}
	})
	for i, part := range area {
		if part > 0 && d.owner[i] == "" {
			sum += (d.f(i%m.NX, i/m.NX) - d.k2*d.values[i]) * part
		}
	}
	return sum
}
