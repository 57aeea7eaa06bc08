package reference

import (
	"fmt"
	"math"
	"slices"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// Multigrid is the cycles of package multigrid over whole meshes in memory, each step by its definition.
type Multigrid struct {
	plan    *multigrid.Plan
	levels  []*Jacobi // field is the unknowns, source the right-hand side
	factors *multigrid.Factors
	scaling float64 // 2^E
}

// cycles is what a cycle does on the levels of an operator.
type cycles interface {
	// sweep does a weighted sweep and returns d.
	sweep(level int, w float64) []float64
	// restrict sets the right-hand side of the next level, and its field to 0.
	restrict(level int)
	// solve sets the unknowns of the coarsest level.
	solve()
	// correct adds the correction from the next level.
	correct(level int)
}

// cycle does the cycle of a level, which begins with its field. It returns d of the first sweep.
func cycle(p *multigrid.Plan, c cycles, level int) (first []float64) {
	weights := multigrid.Weights()
	for i, w := range weights {
		if d := c.sweep(level, w); i == 0 {
			first = d
		}
	}
	c.restrict(level)
	if next := level + 1; next == len(p.Levels)-1 {
		c.solve()
	} else {
		for range p.CycleIndex(next) {
			cycle(p, c, next)
		}
	}
	c.correct(level)
	for _, w := range slices.Backward(weights[:]) {
		c.sweep(level, w)
	}
	return first
}

// NewMultigrid loads the initial field and the source of the finest level.
func NewMultigrid(p *multigrid.Plan, op solver.Operator, rows solver.RowSource,
	e solver.Magnitude) (*Multigrid, error) {
	m := &Multigrid{plan: p, scaling: math.Ldexp(1, int(e))}
	var err error
	if m.factors, err = (multigrid.Layout{Plan: p}).NewFactors(p.CoarsestPoint); err != nil {
		return nil, err
	}
	for i, l := range p.Levels {
		o := solver.Operator{Scale: l.Scale, Blend: l.Blend}
		source := rows
		if i == 0 {
			o.Values = op.Values
		} else {
			source = solver.Zeros{}
		}
		j, err := New(l.Mesh, o, source, e)
		if err != nil {
			return nil, fmt.Errorf("level %d: %w", i, err)
		}
		m.levels = append(m.levels, j)
	}
	return m, nil
}

// Cycle does a V-cycle. It returns the sum of squares of d of its first sweep.
func (m *Multigrid) Cycle() solver.Sum { return m.levels[0].sumOf(cycle(m.plan, m, 0)) }

func (m *Multigrid) solve() {
	j := m.levels[len(m.levels)-1]
	m.factors.Solve(func(x, y int) float64 { return j.source[y*j.mesh.NX+x] },
		func(x, y int, u float64) { j.field[y*j.mesh.NX+x] = j.round(u) })
	j.copyPeriodic(j.field)
}

// Rows returns rows [s.Lo, s.Hi) of the unknowns of a level, dense, little-endian.
func (m *Multigrid) Rows(level int, s solver.Stripe) []byte { return m.levels[level].Rows(s) }

// RightSide returns rows [s.Lo, s.Hi) of the right-hand side of a level. Only interior points count.
func (m *Multigrid) RightSide(level int, s solver.Stripe) []byte {
	j := *m.levels[level]
	j.field = j.source
	return j.Rows(s)
}

func (m *Multigrid) sweep(level int, w float64) []float64 { return m.levels[level].weighted(w) }

// weighted does one weighted sweep and returns d.
func (j *Jacobi) weighted(w float64) []float64 {
	if j.mesh.DType == solver.Float32 {
		w = float64(float32(w))
	}
	nx, d := j.mesh.NX, j.defect()
	eachRow(j.mesh.NY, func(y int) {
		for x := range nx {
			if i := y*nx + x; j.swept(y, x) {
				j.field[i] = j.fma(w, d[i], j.field[i])
			}
		}
	})
	j.copyPeriodic(j.field)
	return d
}

// defect returns d at every point, 0 where no sweep updates it.
func (j *Jacobi) defect() []float64 {
	nx := j.mesh.NX
	d := make([]float64, len(j.field))
	eachRow(j.mesh.NY, func(y int) {
		for x := range nx {
			if j.swept(y, x) {
				d[y*nx+x] = j.round(j.updated(y, x) - j.field[y*nx+x])
			}
		}
	})
	return d
}

func (m *Multigrid) restrict(level int) {
	l, fine, coarse := m.plan.Levels[level], m.levels[level], m.levels[level+1]
	clear(coarse.field)
	defect := fine.defect()
	for i, d := range defect {
		if level == 0 {
			d /= m.scaling
		}
		defect[i] = float64(float32(d))
	}
	eachRow(coarse.mesh.NY, func(y int) {
		for x := range coarse.mesh.NX {
			if !coarse.interior(y, x) {
				continue
			}
			x0, x1 := l.X.Around(x)
			y0, y1 := l.Y.Around(y)
			row := 0.0
			for i := x0; i < x1; i++ {
				column := 0.0
				for k := y0; k < y1; k++ {
					column = coarse.fma(float64(l.Y.Weight(y, k)), fine.at(defect, k, i), column)
				}
				row = coarse.fma(float64(l.X.Weight(x, i)), column, row)
			}
			coarse.source[y*coarse.mesh.NX+x] = coarse.fma(l.Gain, row, 0)
		}
	})
}

// at returns the value of point (y, x) of an array, which may lie beyond the mesh: 0 there, unless the walls are
// periodic.
func (j *Jacobi) at(f []float64, y, x int) float64 {
	nx, ny := j.mesh.NX, j.mesh.NY
	if j.mesh.PeriodicRows() {
		y = 1 + (y-1+ny-2)%(ny-2)
	}
	if j.mesh.PeriodicColumns() {
		x = 1 + (x-1+nx-2)%(nx-2)
	}
	if y < 0 || y >= ny || x < 0 || x >= nx {
		return 0
	}
	return f[y*nx+x]
}

func (m *Multigrid) correct(level int) {
	l, fine, coarse := m.plan.Levels[level], m.levels[level], m.levels[level+1]
	eachRow(fine.mesh.NY, func(y int) {
		for x := range fine.mesh.NX {
			if !fine.swept(y, x) {
				continue
			}
			e := coarse.between(l, y, x)
			i := y*fine.mesh.NX + x
			if level == 0 {
				fine.field[i] = fine.fma(m.scaling, e, fine.field[i])
			} else {
				fine.field[i] = fine.round(fine.field[i] + e)
			}
		}
	})
	fine.copyPeriodic(fine.field)
}

// between interpolates the field of j, whose mesh is the next coarser one of level l, at point (y, x) of level l.
func (j *Jacobi) between(l multigrid.Level, y, x int) float64 {
	x0, wx := l.X.Between(x)
	y0, wy := l.Y.Between(y)
	var t [2]float64
	for k := range t {
		north, south := j.at(j.field, y0, x0+k), j.at(j.field, y0+1, x0+k)
		t[k] = j.fma(float64(wy), j.round(south-north), north)
	}
	return j.fma(float64(wx), j.round(t[1]-t[0]), t[0])
}
