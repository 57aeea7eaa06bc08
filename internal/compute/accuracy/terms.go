package accuracy

import (
	"jacobi/solver"
)

// rowTerms are the terms of a row by block column. In the inner product in which points on Neumann walls count half,
// and a quarter where two walls meet, the defect of a point is the sum of its source, of what screening takes, and of
// its couplings with its neighbours; its share counts (see share).
type rowTerms struct {
	largest      float64
	own          []float64 // of the points of the row alone
	ground       []Couplings
	free         []int64
	above, below []float64 // of the couplings with the row above: for its points, and for those of this row
	held         [2][]Couplings
}

// sourceRow is memory for the sources of a row. All of them are 0 where the problem has none.
type sourceRow struct {
	values []float64
	bytes  []byte
}

// fill fills in the terms of l. own is false if no point of l is the rank's own.
func (t *Tally) fill(s *rowTerms, above, l line, own bool) error {
	if above.u != nil {
		t.between(s, above, l)
	}
	if !own {
		return nil
	}
	return t.inRow(s, l)
}

// free reports whether a sweep updates the point of a row at column ix, which is one that sweeps update.
func (l *line) free(ix int) bool { return l.swept && (l.fixed == nil || !l.fixed[ix]) }

// inRow adds sources, screening, and the couplings along the row.
func (t *Tally) inRow(s *rowTerms, l line) error {
	m := t.sources.Get().(*sourceRow)
	defer t.sources.Put(m)
	b := m.values
	if t.op.Values != nil {
		canonical, _ := t.mesh.Canonical(l.iy)
		if err := t.op.Values.ValueRow(canonical, solver.Source, m.bytes); err != nil {
			return err
		}
		t.mesh.DType.Decode(b, m.bytes)
	}
	part, take := half(t.mesh.Walls.Top, t.mesh.Walls.Bottom, l.iy, t.mesh.NY), 1-2*t.op.Scale
	wx := t.op.Scale * (1 - t.op.Blend) * part
	n, down := len(t.shape.columns), t.shape.down(l.iy)
	s.own, s.ground, s.free = make([]float64, n), make([]Couplings, n), make([]int64, n)
	for i, c := range t.shape.columns {
		sum := 0.0
		for ix := c.Lo; ix < c.Hi; ix++ {
			if !l.free(ix) {
				continue
			}
			s.free[i]++
			inward := down * t.shape.inward[ix]
			w := inward * part * half(t.mesh.Walls.Left, t.mesh.Walls.Right, ix, t.mesh.NX)
			sum += float64(w * (b[ix] - float64(take*l.u[ix])))
			for _, k := range [2]int{ix - 1, ix + 1} {
				if k < 0 || k >= t.mesh.NX {
					continue
				}
				sum += float64(inward * wx * (l.u[k] - l.u[ix]))
				if l.fixed != nil && l.fixed[k] && k >= t.shape.lo && k < t.shape.hi {
					s.ground[i][0] += int64(2 * part)
				}
			}
		}
		s.own[i] = sum
	}
	return nil
}

// between adds the couplings of l with the row above it.
func (t *Tally) between(s *rowTerms, above, l line) {
	n := len(t.shape.columns)
	s.above, s.below, s.held = make([]float64, n), make([]float64, n), [2][]Couplings{make([]Couplings, n),
		make([]Couplings, n)}
	upperShare, lowerShare := t.shape.down(above.iy), t.shape.down(l.iy)
	for i, c := range t.shape.columns {
		for ix := c.Lo; ix < c.Hi; ix++ {
			part := half(t.mesh.Walls.Left, t.mesh.Walls.Right, ix, t.mesh.NX)
			flux := float64(t.op.Scale * t.op.Blend * part * t.shape.inward[ix] * (l.u[ix] - above.u[ix]))
			upper, lower := above.free(ix), l.free(ix)
			if upper {
				s.above[i] += float64(flux * upperShare)
			}
			if lower {
				s.below[i] -= float64(flux * lowerShare)
			}
			if l.fixed == nil || upper == lower {
				continue
			}
			if upper && l.fixed[ix] {
				s.held[0][i][1] += int64(2 * part)
			}
			if lower && above.fixed[ix] {
				s.held[1][i][1] += int64(2 * part)
			}
		}
	}
}

// half returns the part of place i of n that lies in the mesh: a half on a Neumann wall.
func half(before, after solver.Wall, i, n int) float64 {
	if i == 0 && before == solver.Neumann || i == n-1 && after == solver.Neumann {
		return 0.5
	}
	return 1
}
