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
	if p.initial.constant() && (p.initial.zero() || !p.stays()) {
		return p.maxConstant(ctx, lo, hi)
	}
	type largest struct{ guess, data float64 }
	rows := make([]largest, max(0, hi-lo))
	err = parallel.Each(len(rows), func(i int) error {
		if err := ended(ctx); err != nil {
			return err
		}
		if i > 0 && (Masked{p}).RowRepeats(lo+i) {
			return nil
		}
		row := make([]byte, p.mesh.RowBytes())
		if err := p.Row(lo+i, row); err != nil {
			return err
		}
		values := make([]float64, p.mesh.NX)
		p.mesh.DType.Decode(values, row)
		if err := p.eachFree(lo+i, func(from, to int) {
			for x := from; x < to; x++ {
				rows[i].guess, values[x] = max(rows[i].guess, math.Abs(values[x])), 0
			}
		}); err != nil {
			return err
		}
		for _, v := range values {
			rows[i].data = max(rows[i].data, math.Abs(v))
		}
		return nil
	})
	for _, r := range rows {
		guess, data = max(guess, r.guess), max(data, r.data)
	}
	return guess, data, err
}

// maxConstant is MaxGuess for a constant initial field, which is 0 if there are points that stay.
func (p *Problem) maxConstant(ctx context.Context, lo, hi int) (guess, data float64, err error) {
	interior := p.mesh.Interior()
	if max(lo, interior.Lo) < min(hi, interior.Hi) {
		if guess, err = p.maxInner(ctx, interior.Lo); err != nil {
			return 0, 0, err
		}
	}
	if data, err = p.maxColumns(ctx, lo, hi); err != nil {
		return 0, 0, err
	}
	for _, iy := range []int{0, p.mesh.NY - 1} {
		if iy < lo || iy >= hi || !p.fixedWallRow(iy) || p.mesh.PeriodicRows() {
			continue
		}
		m, err := p.maxInner(ctx, iy)
		if err != nil {
			return 0, 0, err
		}
		data = max(data, m)
	}
	return guess, data, nil
}
