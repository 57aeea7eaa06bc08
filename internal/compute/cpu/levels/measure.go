package levels

import (
	"context"
	"sync"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// Squares implements multigrid.Device.
func (d *Device) Squares(_ context.Context, e solver.Magnitude) (total solver.Sum, err error) {
	l := d.finest
	columns := multigrid.OwnColumns(l.Mesh)
	var one sync.Mutex
	d.parallel(l.own, func(part solver.Stripe) {
		engine, sum := l.engine, solver.Sum{}
		rows := newRows[float64](grouped(l.Mesh.NX), 2) // a row of the field amid zeros, and the groups
		for y := part.Lo; y < part.Hi; y++ {
			copy(rows[0][columns.Lo:columns.Hi], l.u.at(y)[columns.Lo:])
			products(&engine, rows[1], rows[0], rows[0])
			if y == part.Hi-1 || (y+1)%solver.GroupRows == 0 {
				for _, term := range groups(&engine, rows[1]) {
					sum.Add(term, e)
				}
				clear(rows[1])
			}
		}
		one.Lock()
		defer one.Unlock()
		total.Merge(sum)
	})
	return total, nil
}

// Largest implements multigrid.Device.
func (d *Device) Largest(_ context.Context, level int, s solver.Stripe) (float64, error) {
	r, err := d.rows(level, multigrid.Unknowns, s, s.Rows()*d.layout.Plan.RowBytes(level, multigrid.Unknowns))
	if err != nil {
		return 0, err
	}
	return d.largest(r, multigrid.OwnColumns(d.layout.Plan.Levels[level].Mesh), s), nil
}

// largest returns the largest absolute value in columns and rows of an array.
func (d *Device) largest(r rows, columns, s solver.Stripe) (largest float64) {
	var one sync.Mutex
	d.parallel(s, func(part solver.Stripe) {
		v := r.largest(columns, part)
		one.Lock()
		defer one.Unlock()
		largest = max(largest, v)
	})
	return largest
}

// largest implements rows.
func (a array[F]) largest(columns, s solver.Stripe) float64 {
	var largest F
	for y := s.Lo; y < s.Hi; y++ {
		for _, v := range a.at(y)[columns.Lo:columns.Hi] {
			largest = max(largest, v, -v)
		}
	}
	return float64(largest)
}

// largest implements rows.
func (u unknowns) largest(_, s solver.Stripe) (largest float64) {
	for _, v := range u[s.Lo:s.Hi] {
		largest = max(largest, v, -v)
	}
	return largest
}
