package levels

import (
	"context"
	"fmt"

	"jacobi/solver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/aggregation"
)

// aggregates are the transfers between level 0 and aggregates, and the solution there.
type aggregates struct {
	*aggregation.Solver
	levels *aggregation.Levels
	tiling aggregation.Tiling
	// By row, from lo on, and column: the unknown of the set of a point; -1 without one. canonical says which row has
	// the sets of another one, which repeats it.
	sets      [][]int32
	lo        int
	canonical func(y int) int
	x, b      []float64 // by unknown
}

// Aggregate implements multigrid.Device.
func (d *Device) Aggregate(ctx context.Context, layout multigrid.Layout, part *aggregation.Part) error {
	l, levels, t := d.finest, layout.Plan.Aggregates, layout.Plan.Tiling
	n := layout.Plan.Levels[1].Mesh.NY
	a := &aggregates{Solver: levels.NewSolver(d.threads), levels: levels, tiling: t, x: make([]float64, n),
		b: make([]float64, n), canonical: l.canonical}
	held := l.reach(l.left())
	a.lo, a.sets = held.Lo, make([][]int32, held.Rows())
	d.parallel(held, func(rows solver.Stripe) {
		for y := rows.Lo; y < rows.Hi; y++ {
			a.sets[y-a.lo] = a.unknownsOf(part.Sets(y), y)
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.layout, d.coarse, d.factors, d.equations = layout, nil, nil, nil
	l.aggregates, l.halves = a, nil
	l.rows = &slopes{tileRows{t}, t.Owned(l.own)}
	return nil
}

// tileRows is the transfer between rows and rows of tiles.
type tileRows struct{ aggregation.Tiling }

// Around implements multigrid.Transfer.
func (t tileRows) Around(tiles int) (first, end int) {
	s := t.Rows(tiles)
	return s.Lo, s.Hi
}

// From implements multigrid.Transfer.
func (t tileRows) From(y int) int { return t.Owned(solver.Stripe{Lo: y, Hi: y}).Lo }

// unknownsOf returns the unknowns of the sets of row y, which count from the first one of the row of tiles.
func (a *aggregates) unknownsOf(sets []int32, y int) []int32 {
	first, row := a.levels.First[a.tiling.Wrapped(a.tiling.TileRow(y))], make([]int32, len(sets))
	for x, s := range sets {
		row[x] = -1
		if s >= 0 {
			row[x] = first + s
		}
	}
	return row
}

// row returns the unknowns of row y; nil where the rank does not have them.
func (a *aggregates) row(y int) []int32 {
	if y = a.canonical(y) - a.lo; y < 0 || y >= len(a.sets) {
		return nil
	}
	return a.sets[y]
}

// restrict adds row y of the residuals times scale to the right-hand side.
func (a *aggregates) restrict(y int, residuals []float64, scale float64) {
	tiles := a.tiling.TileRow(y)
	if y == a.tiling.Rows(tiles).Lo {
		clear(a.b[a.levels.First[tiles]:a.levels.First[tiles+1]])
	}
	for x, set := range a.row(y) {
		if set >= 0 {
			a.b[set] += float64(residuals[x] * scale)
		}
	}
}

// residuals sets dst to the residuals of a row by differences (docs/numerics.md), and to 0 at points that are not
// unknowns.
func residuals(e *engine, dst []float64, s *stencil[float64]) {
	if f := of[float64](e, s.hi-s.lo); f != nil {
		s.load(&e.args, dst, 0)
		e.args.rows[8] = address(s.points.centre, 0)
		f.residuals(&e.args)
		s.zero(dst)
		return
	}
	p, u, faces, b := s.points, wide(s.centre), wide(s.points.east), s.b
	if b == nil {
		b = p.zero
	}
	for x := s.lo; x < s.hi; x++ {
		c := p.centre[x]
		if !(c > 0) {
			dst[x] = 0
			continue
		}
		v, fw, fe, fn, fs := u[x+1], faces[x], faces[x+1], p.north[x], p.south[x]
		row := float64(fw*(u[x]-v)) + float64(fe*(u[x+2]-v))
		column := float64(fn * (s.north[x] - v))
		column += float64(fs * (s.south[x] - v))
		held := float64(aggregation.Screening(c, fw, fe, fn, fs) * v)
		dst[x] = (b[x] + (row + column)) - held
	}
	s.zero(dst)
}

// correct sets dst to row y of the field, from, with the correction times scale.
func (a *aggregates) correct(y int, dst, from []float64, scale float64) {
	copy(dst, from)
	for x, set := range a.row(y) {
		if set >= 0 {
			dst[x] = from[x] + float64(a.x[set]*scale)
		}
	}
}

// unknowns are an array of aggregates.
type unknowns []float64

// array returns an array.
func (a *aggregates) array(k multigrid.Array) unknowns {
	if k == multigrid.RightSide {
		return a.b
	}
	return a.x
}

// check implements rows.
func (u unknowns) check(s solver.Stripe, bytes int) error {
	if s.Lo < 0 || s.Rows() < 0 || s.Hi > len(u) || bytes != 8*s.Rows() {
		return fmt.Errorf("cpu levels: unknowns %v in %d bytes: there are %d", s, bytes, len(u))
	}
	return nil
}

// copyTo implements rows.
func (u unknowns) copyTo(dst []byte, s solver.Stripe) { copy(dst, bytesOf(u[s.Lo:s.Hi])) }

// set implements rows.
func (u unknowns) set(_ solver.Mesh, s solver.Stripe, src []byte) { copy(bytesOf(u[s.Lo:s.Hi]), src) }

// bytes returns the bytes of aggregates and of what level 0 has to reach them.
func (a *aggregates) bytes() int64 {
	bytes := a.Solver.Bytes() + a.levels.Bytes() + 2*8*int64(len(a.x))
	for _, row := range a.sets {
		bytes += 4 * int64(len(row))
	}
	return bytes
}
