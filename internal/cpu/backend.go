// Package cpu is the backend that sweeps a stripe on the processor: SIMD kernels on one or more threads do several
// sweeps in one pass over the memory. See plan for the order of the work and rowLayout for the order of the data.
package cpu

import (
	"context"
	"errors"
	"fmt"

	"jacobi/internal/cpu/kernel"
	"jacobi/solver"
)

// Options choose how a Backend works. They do not change any result.
type Options struct {
	Threads int    // 0: one for each core
	Kernel  string // one of Kernels(); "": the best
	Cache   int    // bytes of cache that a thread's scratch may fill; 0: half of the second-level cache
	// ThreadsPerCore is the number of busy threads, of all ranks of the node, that take turns on a core; 0: 1.
	ThreadsPerCore int
}

// Kernels returns the names of the kernels that run on this machine, the best first. "portable" runs everywhere.
func Kernels() []string { return kernel.Names() }

// minMaxSweeps is the number of sweeps that a pass may always have. A deeper halo allows deeper passes.
const minMaxSweeps = 32

// Stores that bypass the caches pay if the backend's fields, with those of the ranks that share its cores, are larger
// than streamCaches times the cache of its threads.
const streamCaches = 48

// Backend implements solver.Backend.
type Backend struct {
	layout    solver.Layout
	columns   rowLayout
	sweepable solver.Stripe // rows that a sweep may update: all but the fixed rows and the outermost row of a halo
	kernel    kernel.Kernel
	masks     edgeMasks
	plans     []plan // by number of sweeps
	// sweepAll makes Edges sweep the whole stripe. Where ranks take turns on a core, there is no free core to sweep the
	// interior while halos travel.
	sweepAll  bool
	stream    bool // stores bypass the caches: the fields are too large to stay in them until the next pass
	now, next *field
	pool      *pool
	edged     *solver.Pass  // the pass whose edges are done and whose interior is not; nil if there is none
	middle    solver.Stripe // the rows left to its Interior
	undoable  bool          // Undo can take the newest pass back
	last      solver.Pass   // the newest pass
	sums      []solver.Sum
}

// New allocates a backend. Its memory is not touched, and so not provided by the system, before Load.
func New(l solver.Layout, o Options) (*Backend, error) {
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("cpu backend: %w", err)
	}
	if o.Threads < 0 || o.Cache < 0 || o.ThreadsPerCore < 0 {
		return nil, fmt.Errorf("cpu backend: %d threads, %d a core, %d bytes of cache: none can be negative", o.Threads,
			o.ThreadsPerCore, o.Cache)
	}
	o = o.complete()
	k, err := kernel.Find(o.Kernel, l.Mesh.DType)
	if err != nil {
		return nil, err
	}
	b := &Backend{layout: l, kernel: k, sweepAll: o.ThreadsPerCore > 1}
	b.columns = newRowLayout(l.Mesh, k)
	b.masks = newEdgeMasks(b.columns)
	rows := l.Held()
	b.sweepable = solver.Stripe{Lo: rows.Lo + 1, Hi: rows.Hi - 1}
	var scratch int
	b.plans, scratch = newPlans(b.columns, l.Depth, o.Cache)
	b.stream = k.Stream != nil && 2*o.ThreadsPerCore*fieldBytes(rows, b.columns) > o.Threads*streamCaches*o.Cache
	if b.now, err = newField(rows, b.columns); err == nil {
		b.next, err = newField(rows, b.columns)
	}
	if err == nil {
		b.pool, err = newPool(b, o.Threads, scratch, l.Magnitude)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cpu backend: %w", err), b.Close())
	}
	return b, nil
}

// Describe names the kernel and the number of threads, as in "cpu avx512, 2 threads".
func (b *Backend) Describe() string {
	threads := fmt.Sprintf("%d threads", len(b.pool.workers))
	if len(b.pool.workers) == 1 {
		threads = "1 thread"
	}
	return fmt.Sprintf("cpu %s, %s", b.kernel.Name, threads)
}

// Kernel returns the name of the kernel, one of Kernels().
func (b *Backend) Kernel() string { return b.kernel.Name }

// Limits implements solver.Backend.
func (b *Backend) Limits() solver.Limits {
	bytes := len(b.now.memory) + len(b.next.memory)
	for _, w := range b.pool.workers {
		bytes += len(w.scratch)
	}
	return solver.Limits{MaxSweeps: len(b.plans) - 1, Bytes: int64(bytes)}
}

// Close stops the threads and frees the memory.
func (b *Backend) Close() error {
	var errs []error
	if b.pool != nil {
		errs = append(errs, b.pool.close())
		b.pool = nil
	}
	for _, f := range []**field{&b.now, &b.next} {
		if *f != nil {
			errs = append(errs, (*f).memory.free())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

// Load implements solver.Backend. Each thread is the first to write the rows that it will sweep, so the system places
// them near it.
func (b *Backend) Load(ctx context.Context, source solver.RowSource) error {
	b.edged, b.undoable = nil, false
	stored := b.now.rows
	parts := b.split(b.layout.Stripe)
	parts[0].Lo, parts[len(parts)-1].Hi = stored.Lo, stored.Hi
	return b.pool.each(len(parts), func(_ *worker, i int) error {
		buf := make([]byte, b.layout.Mesh.RowBytes())
		for y := parts[i].Lo; y < parts[i].Hi; y++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			row, ok := b.layout.Mesh.Canonical(y)
			if !ok {
				return fmt.Errorf("row %d does not exist", y)
			}
			if err := source.Row(row, buf); err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			b.columns.pack(b.now.row(y), buf)
			b.columns.pack(b.next.row(y), buf)
		}
		return nil
	})
}

// CopyEdge implements solver.Backend.
func (b *Backend) CopyEdge(_ context.Context, side solver.Side, dst []byte) error {
	if b.edged == nil {
		return errors.New("cpu backend: an edge was asked for that is not computed")
	}
	return b.unpack(b.next, b.layout.Edge(side), dst)
}

// SetHalo implements solver.Backend.
func (b *Backend) SetHalo(_ context.Context, side solver.Side, src []byte) error {
	n := b.layout.Mesh.RowBytes()
	if !b.layout.Neighbour[side] || len(src) != b.layout.Depth*n {
		return fmt.Errorf("cpu backend: halo at the %v of %d bytes: expected %d, from a neighbour", side, len(src),
			b.layout.Depth*n)
	}
	top := b.layout.Halo(side).Lo
	for i := range b.layout.Depth {
		b.columns.pack(b.now.row(top+i), src[i*n:(i+1)*n])
	}
	return nil
}

// CopyRows implements solver.Backend.
func (b *Backend) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	if s.Lo < b.layout.Stripe.Lo || s.Hi > b.layout.Stripe.Hi || s.Lo > s.Hi {
		return fmt.Errorf("cpu backend: rows %v: the stripe is %v", s, b.layout.Stripe)
	}
	return b.unpack(b.now, s, dst)
}

func (b *Backend) unpack(f *field, s solver.Stripe, dst []byte) error {
	n := b.layout.Mesh.RowBytes()
	if len(dst) != s.Rows()*n {
		return fmt.Errorf("cpu backend: rows %v need %d bytes, not %d", s, s.Rows()*n, len(dst))
	}
	for i := range s.Rows() {
		b.columns.unpack(dst[i*n:(i+1)*n], f.row(s.Lo+i))
	}
	return nil
}
