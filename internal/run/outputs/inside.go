package outputs

import (
	"context"
	"math"
	"slices"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// inside is the field of a problem with NaN at points outside the material, for those who look at it: they are no part
// of its range, and pictures leave them grey.
type inside struct {
	rows    output.Rows
	problem *problem.Problem
}

// CopyRows implements output.Rows.
func (f inside) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if err := f.rows.CopyRows(ctx, s, dst); err != nil {
		return err
	}
	return f.mask(s.Lo, dst)
}

// Row implements solver.RowSource.
func (f inside) Row(iy int, dst []byte) error {
	if err := f.problem.Row(iy, dst); err != nil {
		return err
	}
	return f.mask(iy, dst)
}

// mask gives points outside the material NaN, in dense rows from row lo on.
func (f inside) mask(lo int, rows []byte) error {
	m := f.problem.Mesh()
	size := m.DType.Size()
	return parallel.Each(len(rows)/m.RowBytes(), func(i int) error {
		outside := make([]bool, m.NX)
		err := f.problem.OutsideRow(lo+i, outside)
		for ix, out := range outside {
			if out {
				m.DType.Encode(rows[i*m.RowBytes()+ix*size:], []float64{math.NaN()})
			}
		}
		return err
	})
}

// seen returns this rank's part of the field for those who look at it.
func (o *Outputs) seen() output.View {
	v := o.view()
	if o.Problem.Porous() {
		f := inside{v.Rows, o.Problem}
		v.Rows, v.Initial = f, f
	}
	return v
}

// average adds rows of the field, as they are seen, to a thumbnail.
func (o *Outputs) average(t *output.Thumbnail) output.Use {
	if !o.Problem.Porous() {
		return t.AddRows
	}
	return func(lo int, rows []byte) error {
		rows = slices.Clone(rows)
		if err := (inside{nil, o.Problem}).mask(lo, rows); err != nil {
			return err
		}
		return t.AddRows(lo, rows)
	}
}
