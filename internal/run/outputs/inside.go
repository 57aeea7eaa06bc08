package outputs

import (
	"context"
	"fmt"
	"math"
	"slices"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// edges are rows 0 and NY-1 of the problem, read before the sweeps: a finished field needs nothing else of it.
type edges map[int][]byte

// readEdges reads those that may belong to the view of a rank.
func readEdges(p *problem.Problem, stripe solver.Stripe) (edges, error) {
	m, rows := p.Mesh(), edges{}
	for _, iy := range []int{0, m.NY - 1} {
		row, beside := make([]byte, m.RowBytes()), iy == stripe.Lo-1 || iy == stripe.Hi
		if !beside && !m.PeriodicRows() {
			continue
		}
		if err := p.Row(iy, row); err != nil {
			return nil, err
		}
		rows[iy] = row
	}
	return rows, nil
}

// Row implements solver.RowSource.
func (e edges) Row(iy int, dst []byte) error {
	if e[iy] == nil {
		return fmt.Errorf("row %d is not beside the stripe", iy)
	}
	copy(dst, e[iy])
	return nil
}

// inside is the field of a problem with NaN at points outside the material, for those who look at it: they are no part
// of its range, and pictures leave them grey.
type inside struct {
	rows    solver.Rows
	edges   solver.RowSource
	problem *problem.Problem
}

// CopyRows implements solver.Rows.
func (f inside) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if err := f.rows.CopyRows(ctx, s, dst); err != nil {
		return err
	}
	return f.mask(s.Lo, dst)
}

// Row implements solver.RowSource.
func (f inside) Row(iy int, dst []byte) error {
	if err := f.edges.Row(iy, dst); err != nil {
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
		f := inside{v.Rows, v.Initial, o.Problem}
		v.Rows, v.Initial = f, f
	}
	return v
}

// average adds rows of the field, as they are seen, to a thumbnail. Where the points outside the material are not known
// any more, there is no picture.
func (o *Outputs) average(t *output.Thumbnail) output.Use {
	if !o.Problem.Porous() {
		return t.AddRows
	}
	known := true
	return func(lo int, rows []byte) error {
		if known {
			rows = slices.Clone(rows)
			if err := (inside{problem: o.Problem}).mask(lo, rows); err != nil {
				o.lack(o.Config.Output.Picture, err)
				known = false
			}
		}
		return t.AddRows(lo, rows)
	}
}
