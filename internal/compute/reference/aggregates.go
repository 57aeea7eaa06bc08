package reference

import (
	"context"

	"jacobi/solver"
	"jacobi/solver/multigrid/aggregation"
)

// aggregates are the level below the finest one.
type aggregates struct {
	solver *aggregation.Solver
	sets   []int32   // by point of the finest mesh: its unknown, or -1
	x, b   []float64 // by unknown
	fault  error     // of the solver
}

// Aggregate replaces all levels but the finest one by aggregates, as multigrid.Grid.Aggregate does, and returns them.
func (m *Weighted) Aggregate(ctx context.Context) (*aggregation.Levels, error) {
	l, t := m.levels[0], m.plan.Tiling
	mesh := l.mesh
	read := func(y int, to aggregation.Row) error {
		y, _ = mesh.Canonical(y)
		for x := range mesh.NX {
			i := y*mesh.NX + x
			if at, ok := l.index(y, x); ok {
				i = at
			}
			to.Diagonal[x], to.East[x], to.South[x] = l.centre[i], l.couplings.east[i], l.couplings.south[i]
		}
		return nil
	}
	part, err := t.Aggregate(ctx, read, t.Covering(mesh.Interior()), t.Owned(mesh.Interior()), 1)
	if err != nil {
		return nil, err
	}
	levels, err := aggregation.New(t, [][]byte{part.Bytes()}, 1)
	if err != nil {
		return nil, err
	}
	n := levels.First[len(levels.First)-1]
	a := &aggregates{solver: levels.NewSolver(1), x: make([]float64, n), b: make([]float64, n)}
	a.sets = make([]int32, len(l.field))
	l.eachUnknown(func(y, x, i int) { a.sets[i] = levels.First[t.TileRow(y)] + part.Sets(y)[x] })
	two := *m.plan
	two.Levels = two.Levels[:2]
	m.coarse, m.plan = a, &two
	return levels, nil
}

// Fault returns what has kept the aggregates from being solved.
func (m *Weighted) Fault() error { return m.coarse.fault }

func (a *aggregates) restrict(l *weightedLevel, scaling float64) {
	clear(a.b)
	r := l.residual()
	l.eachUnknown(func(_, _, i int) { a.b[a.sets[i]] += r[i] / scaling })
}

func (a *aggregates) solve() {
	if err := a.solver.Solve(context.Background(), a.x, a.b); err != nil {
		a.fault = err
	}
}

func (a *aggregates) correct(l *weightedLevel, scaling float64) {
	l.eachUnknown(func(_, _, i int) { l.field[i] = l.fma(scaling, a.x[a.sets[i]], l.field[i]) })
}

// residual returns the residual of every point by differences.
func (l *weightedLevel) residual() []float64 {
	r := make([]float64, len(l.field))
	l.eachUnknown(func(y, x, i int) {
		var faces, flows [4]float64
		for k, n := range around[:4] {
			faces[k] = l.couplings.coupling(y, x, n[0], n[1])
			flows[k] = float64(faces[k] * (l.value(y+n[0], x+n[1]) - l.field[i]))
		}
		excess := aggregation.Screening(l.centre[i], faces[0], faces[1], faces[2], faces[3])
		held := float64(excess * l.field[i])
		r[i] = (l.b[i] + ((flows[0] + flows[1]) + (flows[2] + flows[3]))) - held
	})
	return r
}

// eachUnknown calls do for the unknowns with their index, from row to row and from left to right.
func (l *weightedLevel) eachUnknown(do func(y, x, i int)) {
	rows := l.mesh.Interior()
	lo, hi := l.mesh.InteriorColumns()
	for y := rows.Lo; y < rows.Hi; y++ {
		for x := lo; x < hi; x++ {
			if i, _ := l.index(y, x); l.centre[i] > 0 {
				do(y, x, i)
			}
		}
	}
}

// columnOf returns values [s.Lo, s.Hi), little-endian.
func columnOf(values []float64, s solver.Stripe) []byte {
	b := make([]byte, 8*s.Rows())
	solver.Float64.Encode(b, values[s.Lo:s.Hi])
	return b
}
