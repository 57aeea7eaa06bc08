package output

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// Rows reads the field of one rank. Every solver.Backend implements it.
type Rows interface {
	// CopyRows copies rows [s.Lo, s.Hi), which lie in the rank's stripe, to dst: dense, NX values a row.
	CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error
}

// chunkBytes bounds the buffer in which rows are copied from a field to its outputs. A chunk is at least one row.
const chunkBytes = 4 << 20

// View is one rank's part of the whole mesh: the rows of its stripe and some boundary rows. The views of all ranks
// together contain each of the NY rows once.
//
// Row 0 of a fixed top belongs to the owner of row 1, and row NY-1 of a fixed bottom to the owner of row NY-2. With
// periodic top and bottom, row 0 is a copy of row NY-2 except in the columns of fixed walls and belongs to the owner of
// row NY-2; row NY-1 is a copy of row 1 and belongs to its owner. The row of a Neumann wall is one of the stripe's.
type View struct {
	Mesh    solver.Mesh
	Stripe  solver.Stripe
	Rows    Rows
	Initial solver.RowSource // for the fixed values of rows 0 and NY-1
}

// Each calls do with all rows of the view, a few MiB at a time: dense rows [lo, lo + len(rows)/Mesh.RowBytes()). The
// slice rows is valid only during the call.
func (v View) Each(ctx context.Context, do func(lo int, rows []byte) error) error {
	if err := v.boundary(ctx, 0, do); err != nil {
		return err
	}
	if err := eachChunk(ctx, v.Mesh, v.Stripe, v.Rows, do); err != nil {
		return err
	}
	return v.boundary(ctx, v.Mesh.NY-1, do)
}

// boundary calls do with boundary row iy if it belongs to the view.
func (v View) boundary(ctx context.Context, iy int, do func(int, []byte) error) error {
	row, err := v.Boundary(ctx, iy)
	if err != nil || row == nil {
		return err
	}
	return do(iy, row)
}

// Boundary returns boundary row iy, 0 or NY-1, or nil if the row does not belong to the view or is one of the stripe's.
func (v View) Boundary(ctx context.Context, iy int) ([]byte, error) {
	if interior := v.Mesh.Interior(); iy >= interior.Lo && iy < interior.Hi {
		return nil, nil
	}
	origin := min(max(iy, 1), v.Mesh.NY-2) // iy belongs to the owner of this row
	if v.Mesh.PeriodicRows() {
		origin, _ = v.Mesh.Canonical(iy)
	}
	if origin < v.Stripe.Lo || origin >= v.Stripe.Hi {
		return nil, nil
	}
	row := make([]byte, v.Mesh.RowBytes())
	if err := v.Initial.Row(iy, row); err != nil {
		return nil, fmt.Errorf("boundary row %d: %w", iy, err)
	}
	if v.Mesh.PeriodicRows() {
		now := make([]byte, len(row))
		if err := v.Rows.CopyRows(ctx, solver.Stripe{Lo: origin, Hi: origin + 1}, now); err != nil {
			return nil, fmt.Errorf("copy row %d: %w", origin, err)
		}
		from, to, value := 0, len(row), v.Mesh.DType.Size()
		if v.Mesh.Walls.Left == solver.Fixed {
			from = value
		}
		if v.Mesh.Walls.Right == solver.Fixed {
			to -= value
		}
		copy(row[from:to], now[from:])
	}
	return row, nil
}

// eachChunk calls do with rows [s.Lo, s.Hi) in order, like View.Each.
func eachChunk(ctx context.Context, m solver.Mesh, s solver.Stripe, rows Rows,
	do func(lo int, rows []byte) error) error {
	height := min(max(1, chunkBytes/m.RowBytes()), s.Rows())
	buf := make([]byte, height*m.RowBytes())
	for lo := s.Lo; lo < s.Hi; lo += height {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := solver.Stripe{Lo: lo, Hi: min(lo+height, s.Hi)}
		chunk := buf[:part.Rows()*m.RowBytes()]
		if err := rows.CopyRows(ctx, part, chunk); err != nil {
			return fmt.Errorf("copy rows %v: %w", part, err)
		}
		if err := do(lo, chunk); err != nil {
			return err
		}
	}
	return nil
}
