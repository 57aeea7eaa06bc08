package reference

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// Weighted is the cycles of a weighted operator over whole meshes in memory, each step by its definition in
// docs/numerics.md.
type Weighted struct {
	plan     *multigrid.Plan
	finest   *Jacobi // field is that of level 0
	stencils []*stencil
	levels   []*weightedLevel
	factors  *multigrid.Factors
	coarse   *aggregates // in the place of all levels but the finest; nil before Aggregate
	scaling  float64     // 2^E
}

// weightedLevel is what a sweep and the transfers read.
type weightedLevel struct {
	*stencil
	arithmetic
	couplings *stencil        // those of a sweep; centre is R on level 0 and q on all others
	p         [2][2][]float64 // P'
	field, b  []float64       // unknowns; right-hand side
}

// NewWeighted loads the initial field and the values of the points, and computes the levels.
func NewWeighted(p *multigrid.Plan, op solver.Operator, rows solver.RowSource, e solver.Magnitude) (*Weighted, error) {
	m := &Weighted{plan: p, scaling: math.Ldexp(1, int(e))}
	var err error
	loaded := solver.Operator{Scale: 0.5, Blend: 0.5, Values: op.Values, Fixed: op.Fixed} // field, source, fixed points
	if m.finest, err = New(p.Levels[0].Mesh, loaded, rows, e); err != nil {
		return nil, err
	}
	for i, l := range p.Levels {
		s := newStencil(l)
		m.stencils = append(m.stencils, s)
		if i == 0 {
			err = m.load(op, s)
		} else {
			m.stencils[i-1].interpolate()
			m.stencils[i-1].galerkin(s)
			s.scale()
		}
		if err != nil {
			return nil, err
		}
		m.levels = append(m.levels, m.level(i))
	}
	for i, l := range m.levels[:len(m.levels)-1] {
		l.transfers(m.levels[i+1], i == 0)
	}
	last := m.stencils[len(m.stencils)-1]
	m.factors, err = multigrid.Layout{Plan: p}.NewFactors(func(x, y int) multigrid.Point {
		i, _ := last.index(y, x)
		return multigrid.Point{C: last.centre[i], E: last.east[i], S: last.south[i], SE: last.southEast[i],
			SW: last.southWest[i], In: last.h[i], Out: last.h[i]}
	})
	return m, err
}

// load reads the stencil of the finest level. The first level's couplings for sweeps have all faces.
func (m *Weighted) load(op solver.Operator, s *stencil) error {
	mesh, row := s.mesh, make([]byte, s.mesh.RowBytes())
	for y := range mesh.NY {
		for k, a := range map[solver.Value][]float64{solver.Diagonal: s.centre, solver.EastFace: s.east,
			solver.SouthFace: s.south} {
			if err := op.Values.ValueRow(y, k, row); err != nil {
				return fmt.Errorf("value %d of row %d: %w", k, y, err)
			}
			mesh.DType.Decode(a[y*mesh.NX:(y+1)*mesh.NX], row)
		}
		for x := range mesh.NX {
			if !m.finest.swept(y, x) {
				s.centre[y*mesh.NX+x] = 0
			}
		}
	}
	return nil
}

// level prepares the sweeps of a level.
func (m *Weighted) level(i int) *weightedLevel {
	s := m.stencils[i]
	n := len(s.centre)
	l := &weightedLevel{stencil: s, arithmetic: arithmetic(s.mesh.DType), couplings: newStencil(m.plan.Levels[i]),
		b: make([]float64, n)}
	for k := range 4 {
		l.p[k/2][k%2] = make([]float64, n)
	}
	k := l.couplings
	if i > 0 {
		l.field = make([]float64, n)
		s.each(func(y, x int) {
			at, _ := s.index(y, x)
			k.centre[at] = l.round(s.centre[at] * (s.g[at] * s.g[at]))
			for a, b := range map[*[]float64][2]int{&k.east: {0, 1}, &k.south: {1, 0}, &k.southEast: {1, 1},
				&k.southWest: {1, -1}} {
				(*a)[at] = l.round(s.coupling(y, x, b[0], b[1]) * (s.g[at] * s.at(s.g, y+b[0], x+b[1])))
			}
		})
		return l
	}
	l.field = m.finest.field
	copy(k.east, s.east)
	copy(k.south, s.south)
	s.each(func(y, x int) {
		at, _ := s.index(y, x)
		if c := s.centre[at]; c > 0 {
			k.centre[at], l.b[at] = 1/c, c*m.finest.source[at]
		}
	})
	return l
}

// transfers computes P' to the next level.
func (l *weightedLevel) transfers(next *weightedLevel, finest bool) {
	l.each(func(y, x int) {
		row, inY := l.y.At(y)
		column, inX := l.x.At(x)
		at, _ := l.index(y, x)
		for i := range 4 {
			down, right := i/2, i%2
			if down == 1 && !inY || right == 1 && !inX {
				continue
			}
			f := next.at(next.g, row+down, column+right)
			if !finest {
				f *= l.h[at]
			}
			l.p[down][right][at] = float64(float32(l.stencil.p[down][right][at] * f))
		}
	})
}

// Cycle does a cycle. It returns the sum of squares of d of its first sweep.
func (m *Weighted) Cycle() solver.Sum { return m.finest.sumOf(cycle(m.plan, m, 0)) }

// value returns the value of a point of the field, which may be one of a fixed wall.
func (l *weightedLevel) value(y, x int) float64 {
	if i, ok := l.index(y, x); ok {
		return l.field[i]
	}
	if y < 0 || x < 0 || y >= l.mesh.NY || x >= l.mesh.NX {
		return 0
	}
	return l.field[y*l.mesh.NX+x]
}

// defect returns d of every point.
func (l *weightedLevel) defect() []float64 {
	d := make([]float64, len(l.field))
	neighbours := around[:]
	if l.mesh.DType == solver.Float64 {
		neighbours = around[:4]
	}
	l.each(func(y, x int) {
		i, _ := l.index(y, x)
		if !(l.centre[i] > 0) {
			return
		}
		t := l.b[i]
		for _, n := range slices.Backward(neighbours) {
			t = l.fma(l.couplings.coupling(y, x, n[0], n[1]), l.value(y+n[0], x+n[1]), t)
		}
		if l.mesh.DType == solver.Float64 {
			d[i] = l.fma(l.couplings.centre[i], t, -l.field[i])
		} else {
			d[i] = l.fma(-l.couplings.centre[i], l.field[i], t)
		}
	})
	return d
}

// Defect returns C d of a field of the finest mesh, with or without the source; with aggregates, its residual by
// differences.
func (m *Weighted) Defect(v []float64, source bool) []float64 {
	l := *m.levels[0]
	if l.field = v; !source {
		l.b = make([]float64, len(v))
	}
	if m.coarse != nil {
		return l.residual()
	}
	d := l.defect()
	for i := range d {
		d[i] = float64(l.centre[i] * d[i])
	}
	return d
}

func (m *Weighted) sweep(level int, w float64) []float64 {
	l := m.levels[level]
	d := l.defect()
	w = l.round(w)
	l.each(func(y, x int) {
		if i, _ := l.index(y, x); l.centre[i] > 0 {
			l.field[i] = l.fma(w, d[i], l.field[i])
		}
	})
	return d
}

func (m *Weighted) restrict(level int) {
	if m.coarse != nil {
		m.coarse.restrict(m.levels[0], m.scaling)
		return
	}
	l, next := m.levels[level], m.levels[level+1]
	clear(next.field)
	d := l.defect()
	if level == 0 {
		for i := range d {
			d[i] = float64(float32(float64(l.centre[i]*d[i]) / m.scaling))
		}
	}
	next.each(func(row, column int) {
		sum := 0.0
		top, bottom := l.y.Around(row)
		left, right := l.x.Around(column)
		for y := top; y < bottom; y++ {
			for x := left; x < right; x++ {
				if p, ok := l.towards(l.p, y, x, row, column); ok {
					sum = next.fma(p, l.at(d, y, x), sum)
				}
			}
		}
		next.set(next.b, row, column, sum)
	})
}

func (m *Weighted) correct(level int) {
	if m.coarse != nil {
		m.coarse.correct(m.levels[0], m.scaling)
		return
	}
	l, next := m.levels[level], m.levels[level+1]
	l.each(func(y, x int) {
		i, _ := l.index(y, x)
		if !(l.centre[i] > 0) {
			return
		}
		row, _ := l.y.At(y)
		column, _ := l.x.At(x)
		sum, first := 0.0, true
		for k := range 4 {
			down, right := row+k/2, column+k%2
			p, ok := l.towards(l.p, y, x, down, right)
			switch v := next.value(down, right); {
			case !ok:
			case first:
				sum, first = next.round(p*v), false
			default:
				sum = next.fma(p, v, sum)
			}
		}
		if level == 0 {
			l.field[i] = l.fma(m.scaling, sum, l.field[i])
		} else {
			l.field[i] = l.round(l.field[i] + sum)
		}
	})
}

func (m *Weighted) solve() {
	if m.coarse != nil {
		m.coarse.solve()
		return
	}
	l := m.levels[len(m.levels)-1]
	at := func(x, y int) int {
		i, _ := l.index(y, x)
		return i
	}
	m.factors.Solve(func(x, y int) float64 { return l.b[at(x, y)] },
		func(x, y int, u float64) { l.field[at(x, y)] = l.round(u) })
}

// Rows returns rows [s.Lo, s.Hi) of the unknowns of a level, dense, little-endian.
func (m *Weighted) Rows(level int, s solver.Stripe) []byte {
	if m.coarse != nil && level > 0 {
		return columnOf(m.coarse.x, s)
	}
	return m.levels[level].rows(m.levels[level].field, s)
}

// RightSide returns rows [s.Lo, s.Hi) of the right-hand side of a level. Only interior points count.
func (m *Weighted) RightSide(level int, s solver.Stripe) []byte {
	if m.coarse != nil && level > 0 {
		return columnOf(m.coarse.b, s)
	}
	return m.levels[level].rows(m.levels[level].b, s)
}

func (l *weightedLevel) rows(a []float64, s solver.Stripe) []byte {
	return (&Jacobi{mesh: l.mesh, field: a}).Rows(s)
}

// Stencil returns rows [s.Lo, s.Hi) of an array, from multigrid.Centre to multigrid.Scaling, of a level but the finest
// one: dense, little-endian float64 values. Only interior points count.
func (m *Weighted) Stencil(level int, a multigrid.Array, s solver.Stripe) (b []byte) {
	k := m.stencils[level]
	values := map[multigrid.Array][]float64{multigrid.Centre: k.centre, multigrid.East: k.east,
		multigrid.South: k.south, multigrid.SouthEast: k.southEast, multigrid.SouthWest: k.southWest,
		multigrid.Scaling: k.g}[a]
	for _, v := range values[s.Lo*k.mesh.NX : s.Hi*k.mesh.NX] {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}
