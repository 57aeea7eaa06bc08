package problem

import (
	"context"
	"runtime"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/rowmath"
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
	type buffers struct {
		row    []byte
		values []float64
	}
	most, own := make([]largest, len(rows)), make([]buffers, runtime.GOMAXPROCS(0))
	err = parallel.On(len(own), len(rows), func(core, i int) error {
		iy, m, b := rows[i], &most[i], &own[core]
		if err := ended(ctx); err != nil || i > 0 && iy == rows[i-1]+1 && (Masked{p}).RowRepeats(iy) {
			return err
		}
		if b.row == nil {
			b.row, b.values = make([]byte, p.mesh.RowBytes()), make([]float64, p.mesh.NX)
		}
		if err := p.Row(iy, b.row); err != nil {
			return err
		}
		values := b.values
		p.mesh.DType.Decode(values, b.row)
		if err := p.eachFree(iy, func(from, to int) {
			m.guess = max(m.guess, rowmath.Largest(values[from:to]))
			clear(values[from:to])
		}); err != nil {
			return err
		}
		m.data = rowmath.Largest(values)
		return nil
	})
	for _, m := range most {
		guess, data = max(guess, m.guess), max(data, m.data)
	}
	return guess, data, err
}
