package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Load implements solver.Backend.
func (b *Backend) Load(ctx context.Context, rows solver.RowSource) error {
	b.calls.Load()
	if err := b.direct.settle(); err != nil { // rows in flight must not arrive after the load
		return err
	}
	// Kernels also read the padding after a row. Its value cancels out, but it must be a number.
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
	// The driver takes long for the first launch of a kernel, so launch the kernel of nearly all passes before the
	// first sweep. Its output in next is not used.
	if err := b.sweep(b.fast, solver.Pass{Sweeps: min(b.layout.Depth, b.maxSweeps())}, b.layout.Stripe, b.layout.Stripe,
		false); err != nil {
		return err
	}
	// The fixed rows and columns of next are those of now.
	if err := b.fast.CopyOnDevice(b.next.base, b.now.base, int(b.now.bytes())); err != nil {
		return err
	}
	if err := b.fast.Fill(b.counts, 0, ring*b.maxSweeps()*sumBytes); err != nil {
		return err
	}
	if err := b.context.Synchronize(); err != nil {
		return err
	}
	clear(b.pinned.Bytes()) // as the words on the device
	b.calls.Done()
	return nil
}

// CopyEdge implements solver.Backend.
func (b *Backend) CopyEdge(ctx context.Context, side solver.Side, dst []byte) error {
	if err := b.calls.CopyEdge(side, len(dst)); err != nil {
		return err
	}
	return b.copyOut(ctx, b.fast, b.next, b.layout.Edge(side), dst)
}

// copyOut copies rows of f to dst after the earlier work of the stream, and waits.
func (b *Backend) copyOut(ctx context.Context, s *driver.Stream, f field, rows solver.Stripe, dst []byte) error {
	width := b.layout.Mesh.RowBytes()
	if at, ok := b.inPinned(dst); ok {
		if err := s.Copy2D(b.target.Rows(at, width), f.at(rows.Lo).Rows(f.pitch), width, rows.Rows()); err != nil {
			return err
		}
		return b.awaitAll(ctx, s)
	}
	chunk := len(b.staging.Bytes()) / width
	for lo := rows.Lo; lo < rows.Hi; lo += chunk {
		n := min(chunk, rows.Hi-lo)
		if err := s.Copy2D(b.staging.Rows(0, width), f.at(lo).Rows(f.pitch), width, n); err != nil {
			return err
		}
		if err := b.awaitAll(ctx, s); err != nil {
			return err
		}
		copy(dst[(lo-rows.Lo)*width:], b.staging.Bytes()[:n*width])
	}
	return nil
}

// SetHalo implements solver.Backend.
func (b *Backend) SetHalo(_ context.Context, side solver.Side, src []byte) error {
	if err := b.calls.SetHalo(side, len(src)); err != nil {
		return err
	}
	width, rows := b.layout.Mesh.RowBytes(), b.layout.Halo(side)
	if err := b.fast.Synchronize(); err != nil { // the staging memory may be in use
		return err
	}
	copy(b.staging.Bytes(), src)
	if err := b.fast.Copy2D(b.now.at(rows.Lo).Rows(b.now.pitch), b.staging.Rows(0, width), width,
		rows.Rows()); err != nil {
		return err
	}
	return b.fast.Synchronize()
}

// CopyRows implements solver.Backend.
func (b *Backend) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.calls.CopyRows(s, len(dst)); err != nil {
		return err
	}
	// A copy must not be queued behind work that never ends: dst may be unmapped meanwhile.
	for _, s := range []*driver.Stream{b.fast, b.slow} {
		if err := b.awaitAll(ctx, s); err != nil {
			return err
		}
	}
	return b.copyOut(ctx, b.slow, b.now, s, dst)
}

// Pin locks the pages of memory, from mmap, so that CopyRows copies straight into it, until the returned function is
// called. Memory that is unmapped before Close must be unpinned first.
func (b *Backend) Pin(memory []byte) (unpin func() error, err error) {
	h, err := b.context.RegisterHost(memory)
	if err != nil {
		return nil, err
	}
	b.target = h
	return func() error {
		b.target = nil
		return errors.Join(b.release(), h.Free()) // after a failure a stream may wait for a neighbour
	}, nil
}

// inPinned returns the offset of dst in the pinned memory; ok is false if dst does not lie in it.
func (b *Backend) inPinned(dst []byte) (at int, ok bool) {
	if b.target == nil || len(dst) == 0 {
		return 0, false
	}
	memory := b.target.Bytes()
	at = int(uintptr(unsafe.Pointer(&dst[0])) - uintptr(unsafe.Pointer(&memory[0])))
	return at, at >= 0 && at+len(dst) <= len(memory)
}
