package cuda

import (
	"context"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Load implements solver.Backend.
func (b *Backend) Load(ctx context.Context, rows solver.RowSource) error {
	if err := b.direct.settle(); err != nil { // rows on their way must not come later
		return err
	}
	// Kernels read the padding behind a row as well; whatever number it holds cancels, but it must be one.
	if err := b.fast.Fill(b.now.base, 0, int(b.now.bytes())); err != nil {
		return err
	}
	width := b.layout.Mesh.RowBytes()
	chunk := len(b.staging.Bytes()) / width
	for lo := b.now.rows.Lo; lo < b.now.rows.Hi; lo += chunk {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(chunk, b.now.rows.Hi-lo)
		for i := range n {
			y, ok := b.layout.Mesh.Canonical(lo + i)
			if !ok {
				return fmt.Errorf("cuda backend: row %d is not of the mesh", lo+i)
			}
			if err := rows.Row(y, b.staging.Bytes()[i*width:(i+1)*width]); err != nil {
				return err
			}
		}
		if err := b.fast.Copy2D(b.now.at(lo).Rows(b.now.pitch), b.staging.Rows(0, width), width, n); err != nil {
			return err
		}
		if err := b.fast.Synchronize(); err != nil {
			return err
		}
	}
	// The fixed rows and columns of next are those of now.
	if err := b.fast.CopyOnDevice(b.next.base, b.now.base, int(b.now.bytes())); err != nil {
		return err
	}
	if err := b.fast.Fill(b.counts, 0, ring*b.maxSweeps()*sumBytes); err != nil {
		return err
	}
	b.edged, b.undoable = nil, false
	return b.context.Synchronize()
}

// CopyEdge implements solver.Backend.
func (b *Backend) CopyEdge(_ context.Context, side solver.Side, dst []byte) error {
	if b.edged == nil || !b.layout.Neighbour[side] {
		return fmt.Errorf("cuda backend: edge at the %v: there is none before Edges, or no neighbour", side)
	}
	return b.copyOut(b.fast, b.next, b.layout.Edge(side), dst)
}

// copyOut copies rows of f to dst, behind what the stream holds, and waits.
func (b *Backend) copyOut(s *driver.Stream, f field, rows solver.Stripe, dst []byte) error {
	width := b.layout.Mesh.RowBytes()
	if len(dst) != rows.Rows()*width {
		return fmt.Errorf("cuda backend: rows %v need %d bytes, not %d", rows, rows.Rows()*width, len(dst))
	}
	chunk := len(b.staging.Bytes()) / width
	for lo := rows.Lo; lo < rows.Hi; lo += chunk {
		n := min(chunk, rows.Hi-lo)
		if err := s.Copy2D(b.staging.Rows(0, width), f.at(lo).Rows(f.pitch), width, n); err != nil {
			return err
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
		copy(dst[(lo-rows.Lo)*width:], b.staging.Bytes()[:n*width])
	}
	return nil
}

// SetHalo implements solver.Backend.
func (b *Backend) SetHalo(_ context.Context, side solver.Side, src []byte) error {
	width, rows := b.layout.Mesh.RowBytes(), b.layout.Halo(side)
	if !b.layout.Neighbour[side] || len(src) != rows.Rows()*width {
		return fmt.Errorf("cuda backend: halo at the %v of %d bytes: expected %d, from a neighbour", side, len(src), rows.Rows()*width)
	}
	if err := b.fast.Synchronize(); err != nil { // the staging memory may be in use
		return err
	}
	copy(b.staging.Bytes(), src)
	if err := b.fast.Copy2D(b.now.at(rows.Lo).Rows(b.now.pitch), b.staging.Rows(0, width), width, rows.Rows()); err != nil {
		return err
	}
	return b.fast.Synchronize()
}

// CopyRows implements solver.Backend.
func (b *Backend) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.Lo < b.layout.Stripe.Lo || s.Hi > b.layout.Stripe.Hi || s.Lo > s.Hi {
		return fmt.Errorf("cuda backend: rows %v: the stripe is %v", s, b.layout.Stripe)
	}
	if err := b.context.Synchronize(); err != nil {
		return err
	}
	return b.copyOut(b.slow, b.now, s, dst)
}
