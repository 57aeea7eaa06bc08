package outputs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
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

// newHashes returns the hashes of this rank's rows; nil where no hash is wanted.
func (o *Outputs) newHashes() *output.RowHashes {
	if o.Many && !o.Hash {
		return nil
	}
	return output.NewRowHashes(o.Layout.Mesh)
}

// fieldHash returns the hash of the field on rank 0; "" where no hash is wanted.
func (o *Outputs) fieldHash(ctx context.Context, h *output.RowHashes) (string, error) {
	if h == nil {
		return "", nil
	}
	defer o.Tracer.Phase(trace.PhaseHash, time.Now())
	var all [][]byte
	for _, part := range h.Parts(o.Layout.Mesh.NY, roster.MaxMessage) {
		parts, err := o.Comm.Gather(ctx, "hash", part)
		if err != nil {
			return "", err
		}
		all = append(all, parts...)
	}
	if o.id.Rank != 0 {
		return "", nil
	}
	return output.FieldHash(o.Layout.Mesh.NY, all...)
}

// sendRow sends a row to another rank, in several messages if it is long. It ends when that rank receives the row.
func (o *Outputs) sendRow(ctx context.Context, to int, tag string, row []byte) error {
	for part := range slices.Chunk(row, roster.MaxMessage) {
		if err := o.Comm.Send(ctx, to, tag, part); err != nil {
			return err
		}
	}
	return nil
}

// recvRow returns the row that another rank sends.
func (o *Outputs) recvRow(ctx context.Context, from int, tag string) (row []byte, err error) {
	for len(row) < o.Layout.Mesh.RowBytes() && err == nil {
		var part []byte
		part, err = o.Comm.Recv(ctx, from, tag)
		row = append(row, part...)
	}
	return row, err
}
