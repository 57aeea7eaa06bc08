package levels

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// equations are the stencils of a level of a weighted operator while its levels are set up. docs/numerics.md has the
// formulas, and Array of package multigrid the names of the arrays. Arrays have the rows of the level's others.
type equations struct {
	multigrid.Level
	finest bool // there are no diagonal neighbours, and couplings to points that are not unknowns
	arrays [multigrid.Scaling - multigrid.Centre + 1]array[float64]
	zero   []float64
}

// array returns one of the arrays.
func (q *equations) array(a multigrid.Array) array[float64] { return q.arrays[a-multigrid.Centre] }

// newEquations returns the equations of the levels that Coarsen computes, by level; those of level 0 share the arrays
// of the device.
func (d *Device) newEquations() []*equations {
	all := []*equations{{Level: d.finest.Level, finest: true, zero: newRows[float64](d.finest.Mesh.NX, 1)[0]}}
	finest := d.finest.points
	copy(all[0].arrays[:], []array[float64]{finest.centre, finest.east, finest.south})
	for _, l := range d.coarse {
		q := &equations{Level: l.Level, zero: newRows[float64](l.Mesh.NX, 1)[0]}
		for i := range q.arrays {
			q.arrays[i] = newArrayOf[float64](l, l.Mesh.NX)
		}
		all = append(all, q)
	}
	return all
}

// setUp returns an array of a level that is being set up, or of the finest one; without rows if there is none.
func (d *Device) setUp(level int, a multigrid.Array) (none array[float64]) {
	switch {
	case level == 0 && d.finest.points != nil && a <= multigrid.South:
		c := d.finest.points
		return [...]array[float64]{c.centre, c.east, c.south}[a-multigrid.Centre]
	case level < 1 || level >= len(d.equations) || a > multigrid.Scaling:
		return none
	}
	return d.equations[level].array(a)
}

// loadPoints loads the numbers of the points of a weighted operator, unless they are loaded already and Complete has
// not been called since.
func (d *Device) loadPoints(ctx context.Context) error {
	l := d.finest
	if l.points == nil || d.equations != nil {
		return nil
	}
	once := l.once()
	fixed, errs := make([][]multigrid.Columns, once.Rows()), make([]error, once.Rows())
	d.parallel(once, func(part solver.Stripe) {
		for y := part.Lo; y < part.Hi; y++ {
			i := y - once.Lo
			if y > part.Lo && d.pointsRepeat(y) {
				l.copyPoints(y)
				fixed[i] = fixed[i-1]
				continue
			}
			if errs[i] = context.Cause(ctx); errs[i] == nil {
				fixed[i], errs[i] = d.loadPointsOf(y)
			}
			if errs[i] != nil {
				return
			}
		}
	})
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	l.fixed = make(multigrid.FixedRuns, l.Mesh.NY)
	for i, runs := range fixed {
		row, _ := l.Mesh.Canonical(once.Lo + i)
		l.fixed[row] = runs
	}
	d.equations = d.newEquations()
	return nil
}

// pointsRepeat reports whether the points of row y are known to be those of row y-1.
func (d *Device) pointsRepeat(y int) bool {
	for k := range solver.SouthFace + 1 {
		if !solver.ValuesOf(d.layout.Values, k).Repeats(d.finest.Mesh, y) {
			return false
		}
	}
	if d.layout.Fixed == nil {
		return true
	}
	row, _ := d.finest.Mesh.Canonical(y)
	return slices.Equal(d.layout.Fixed[row], d.layout.Fixed[row-1])
}

// copyPoints makes the points of row y those of row y-1.
func (l *level[F]) copyPoints(y int) {
	c := l.points
	for _, a := range []array[F]{c.centre, c.east, c.south, c.diagonal, l.b} {
		copy(a.at(y), a.at(y-1))
	}
}

// loadPointsOf loads a row and returns the points of it that no sweep updates.
func (d *Device) loadPointsOf(y int) (fixed []multigrid.Columns, err error) {
	l := d.finest
	c := l.points
	row, ok := l.Mesh.Canonical(y)
	if !ok {
		return nil, fmt.Errorf("row %d does not exist", y)
	}
	for _, v := range []struct {
		value solver.Value
		to    array[float64]
	}{{solver.Diagonal, c.centre}, {solver.EastFace, c.east}, {solver.SouthFace, c.south}, {solver.Source, l.b}} {
		if err := d.layout.Values.ValueRow(row, v.value, bytesOf(v.to.at(y))); err != nil {
			return nil, fmt.Errorf("%v of row %d: %w", v.value, row, err)
		}
		repeat(v.to.at(y), l.Mesh)
	}
	centre, lo, hi := c.centre.at(y), 0, 0
	if in := l.Mesh.Interior(); l.Mesh.PeriodicRows() || y >= in.Lo && y < in.Hi {
		lo, hi = l.Mesh.InteriorColumns()
	}
	clear(centre[:lo])
	clear(centre[hi:])
	if d.layout.Fixed != nil {
		for _, r := range d.layout.Fixed[row] {
			clear(centre[r.Lo:r.Hi])
		}
	}
	repeat(centre, l.Mesh)
	inverse, b := c.diagonal.at(y), l.b.at(y)
	for x, v := range centre {
		switch {
		case v > 0:
			inverse[x] = 1 / v
		case x >= lo && x < hi:
			fixed = multigrid.AppendColumn(fixed, x)
		}
		b[x] *= v
	}
	return fixed, nil
}

// Coarsen implements multigrid.Device.
func (d *Device) Coarsen(ctx context.Context, level int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.coarsen(level, d.restricts(level+1))
	return nil
}

// coarsen computes rows of the stencil of the next coarser level.
func (d *Device) coarsen(level int, rows solver.Stripe) {
	to := d.equations[level+1]
	d.parallel(rows, func(part solver.Stripe) {
		g := newGalerkin(d.finest.engine, d.equations[level])
		for row := part.Lo; row < part.Hi; row++ {
			g.coarsen(to, row)
		}
	})
}

// parallel divides rows among the threads.
func (d *Device) parallel(rows solver.Stripe, run func(solver.Stripe)) {
	divide(rows, lanesOf(rows, d.finest.Mesh.NX, d.threads), func(_ int, part solver.Stripe) { run(part) })
}

// Scale implements multigrid.Device.
func (d *Device) Scale(ctx context.Context, level int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.scale(level, d.coarse[level-1].own)
	return nil
}

// scale computes rows of the scaling of a level.
func (d *Device) scale(level int, rows solver.Stripe) {
	q := d.equations[level]
	d.parallel(rows, func(part solver.Stripe) {
		s := newScaler(d.finest.engine, q)
		for y := part.Lo; y < part.Hi; y++ {
			g := q.array(multigrid.Scaling).at(y)
			s.scale(y, g, nil)
			repeat(g, q.Mesh)
		}
	})
}

// Complete implements multigrid.Device.
func (d *Device) Complete(ctx context.Context) error {
	last := len(d.coarse)
	for l := d.layout.Agglomerated; l <= last; l++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows := d.coarse[l-1].own
		if l > d.layout.Agglomerated {
			d.coarsen(l-1, rows)
		}
		d.scale(l, rows)
	}
	completeTransfers(d, d.finest, 0)
	for i, l := range d.coarse[:last-1] {
		completeTransfers(d, l, i+1)
		d.completePoints(l, d.equations[i+1])
	}
	var err error
	if d.factors, err = d.layout.NewFactors(d.coarsestPoint()); err != nil {
		return err
	}
	d.equations = nil
	return nil
}

// completePoints computes the numbers that sweeps read.
func (d *Device) completePoints(l *level[float32], q *equations) {
	d.parallel(l.once(), func(rows solver.Stripe) {
		for y := rows.Lo; y < rows.Hi; y++ {
			q.scaled(l.points, y)
		}
	})
}

// completeTransfers computes the transfers of a level.
func completeTransfers[F float](d *Device, l *level[F], level int) {
	next := d.equations[level+1]
	d.parallel(l.once(), func(rows solver.Stripe) {
		w := newTransferer(d.finest.engine, d.equations[level], next)
		for y := rows.Lo; y < rows.Hi; y++ {
			w.set(l.halves, y)
		}
	})
}
