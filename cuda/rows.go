package cuda

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Load implements solver.Backend.
func (b *Backend) Load(ctx context.Context, rows solver.RowSource) error {
	d := b.dev
	b.edged = false
	if err := b.mover.settle(); err != nil { // rows in flight must not arrive after the load
		return err
	}
	// Kernels also read the padding after a row. Its value cancels out, but it must be a number.
	if err := d.fast.Fill(d.now.base, 0, int(d.now.bytes())); err != nil {
		return err
	}
	from := solver.RowsOf(rows)
	from.Row = repeating(d.layout.Mesh, from.Row)
	if err := d.load(ctx, d.fast, d.layout.Mesh, upload{to: d.now, from: from}); err != nil {
		return err
	}
	if err := d.loadOperator(ctx, b.operator); err != nil {
		return err
	}
	// The driver takes long for the first launch of a kernel, so launch the kernel of nearly all passes before the
	// first sweep. Its output in next is not used.
	if err := b.sweep(d.fast, solver.Pass{Sweeps: min(d.layout.Depth, d.maxSweeps())}, d.layout.Stripe, d.layout.Stripe,
		halos{}); err != nil {
		return err
	}
	// The fixed rows and columns of next are those of now.
	if err := d.fast.CopyOnDevice(d.next.base, d.now.base, int(d.now.bytes())); err != nil {
		return err
	}
	if err := d.fast.Fill(b.counts, 0, ring*d.maxSweeps()*sumBytes); err != nil {
		return err
	}
	// Not the whole context: a neighbour in this process may wait in it until this rank has loaded.
	for _, stream := range []*driver.Stream{d.fast, d.slow} {
		if err := d.awaitAll(ctx, stream); err != nil {
			return err
		}
	}
	clear(b.pinned.Bytes()) // as the words on the device
	return b.mover.loaded()
}

// HaloBytes implements solver.Backend.
func (b *Backend) HaloBytes() [2]int { return b.dev.layout.HaloBytes() }

// CopyEdge implements solver.Backend.
func (b *Backend) CopyEdge(ctx context.Context, side solver.Side, dst []byte) error {
	if err := b.dev.layout.CheckSide(side, len(dst)); err != nil {
		return fmt.Errorf("cuda backend: edge: %w", err)
	}
	return b.dev.copyOut(ctx, b.dev.fast, b.dev.next, b.dev.layout.Edge(side), dst)
}

// SetHalo implements solver.Backend.
func (b *Backend) SetHalo(ctx context.Context, side solver.Side, src []byte) error {
	if err := b.dev.layout.CheckSide(side, len(src)); err != nil {
		return fmt.Errorf("cuda backend: halo: %w", err)
	}
	// The staging memory may be in use, and the stream may wait for the neighbour at the other side, which may be gone.
	if err := b.dev.awaitAll(ctx, b.dev.fast); err != nil {
		return err
	}
	copy(b.dev.staging.Bytes(), src)
	rows := b.dev.layout.Halo(side)
	return b.dev.stage(ctx, b.dev.now, rows.Lo, rows.Rows())
}

// CopyRows implements solver.Backend.
func (b *Backend) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.dev.layout.CheckCopy(s, len(dst)); err != nil {
		return fmt.Errorf("cuda backend: %w", err)
	}
	// A copy must not be queued behind work that never ends: dst may be unmapped meanwhile.
	for _, stream := range []*driver.Stream{b.dev.fast, b.dev.slow} {
		if err := b.dev.awaitAll(ctx, stream); err != nil {
			return err
		}
	}
	return b.dev.copyOut(ctx, b.dev.slow, b.dev.now, s, dst)
}

// Pin locks the pages of memory, from mmap, so that CopyRows copies straight into it, until the returned function is
// called. Memory that is unmapped before Close must be unpinned first.
func (b *Backend) Pin(memory []byte) (unpin func() error, err error) {
	h, err := b.dev.context.RegisterHost(memory)
	if err != nil {
		return nil, err
	}
	b.dev.target = h
	return func() error {
		b.dev.target = nil
		return errors.Join(b.dev.release(), h.Free()) // after a failure a stream may wait for a neighbour
	}, nil
}
