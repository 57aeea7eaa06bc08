package problem

import (
	"context"
	"math"

	"jacobi/internal/base/parallel"
)

// Masked yields the field that is 0 at all points that a sweep updates, and that of the problem at the others.
type Masked struct{ *Problem }

// Row implements solver.RowSource.
func (m Masked) Row(iy int, dst []byte) error {
	if err := m.Problem.Row(iy, dst); err != nil {
		return err
	}
	return m.eachFree(iy, func(from, to int) {
		size := m.mesh.DType.Size()
		clear(dst[from*size : to*size])
	})
}

// eachFree calls f for the runs of columns [from, to) of row iy that a sweep updates, copies of periodic ones included.
func (p *Problem) eachFree(iy int, f func(from, to int)) error {
	interior := p.mesh.Interior()
	if row, ok := p.mesh.Canonical(iy); !ok || row < interior.Lo || row >= interior.Hi {
		return nil
	}
	lo, hi := p.mesh.InteriorColumns()
	if p.mesh.PeriodicColumns() {
		lo, hi = 0, p.mesh.NX
	}
	if !p.stays() {
		f(lo, hi)
		return nil
	}
	fixed := make([]bool, p.mesh.NX)
	if err := p.FixedRow(iy, fixed); err != nil {
		return err
	}
	for from := lo; from < hi; from++ {
		to := from
		for to < hi && !fixed[to] {
			to++
		}
		if to > from {
			f(from, to)
		}
		from = to
	}
	return nil
}

// MaxGuess returns the largest absolute value of the initial field at the points of rows [lo, hi) that a sweep updates,
// and of the given rows at the others. It stops when ctx ends.
func (p *Problem) MaxGuess(ctx context.Context, lo, hi int) (guess, data float64, err error) {
	if !p.initial.constant() || !p.initial.zero() && p.stays() {
		return p.maxRows(ctx, spread(lo, hi, hi-lo))
	}
	// Rows of the interior differ at most in their walls.
	walls, err := p.maxColumns(ctx, lo, hi)
	if err != nil {
		return 0, 0, err
	}
	var rows []int
	for _, iy := range []int{0, p.mesh.NY - 1, max(lo, p.mesh.Interior().Lo)} {
		if iy >= lo && iy < hi {
			rows = append(rows, iy)
		}
	}
	guess, data, err = p.maxRows(ctx, rows)
	return guess, max(data, walls), err
}

// maxRows is MaxGuess for some rows.
func (p *Problem) maxRows(ctx context.Context, rows []int) (guess, data float64, err error) {
	type largest struct{ guess, data float64 }
	most := make([]largest, len(rows))
	err = parallel.Each(len(rows), func(i int) error {
		iy, m := rows[i], &most[i]
		if err := ended(ctx); err != nil || i > 0 && iy == rows[i-1]+1 && (Masked{p}).RowRepeats(iy) {
			return err
		}
		row := make([]byte, p.mesh.RowBytes())
		if err := p.Row(iy, row); err != nil {
			return err
		}
		values := make([]float64, p.mesh.NX)
		p.mesh.DType.Decode(values, row)
		if err := p.eachFree(iy, func(from, to int) {
			for x := from; x < to; x++ {
				m.guess, values[x] = max(m.guess, math.Abs(values[x])), 0
			}
		}); err != nil {
			return err
		}
		for _, v := range values {
			m.data = max(m.data, math.Abs(v))
		}
		return nil
	})
	for _, m := range most {
		guess, data = max(guess, m.guess), max(data, m.data)
	}
	return guess, data, err
}
