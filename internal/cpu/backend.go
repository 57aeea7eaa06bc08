// Package cpu is the backend that sweeps a stripe on the processor: several sweeps in one pass through the memory, by
// SIMD kernels, on one or more threads. See plan for the order of the work and rowLayout for that of the data.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"jacobi/internal/cpu/kernel"
	"jacobi/solver"
)

// Options choose how a Backend works. Nothing in it changes a result.
type Options struct {
	Threads int    // 0: one for each core
	Kernel  string // one of Kernels(); "": the best
	Cache   int    // bytes of cache that a thread may fill with its scratch; 0: as much as the machine suggests
}

// Kernels returns the names of the kernels that run on this machine, the best first; "portable" runs everywhere.
func Kernels() []string { return kernel.Names() }

// leastMaxSweeps is what a block may always have; deeper halos allow deeper blocks.
const leastMaxSweeps = 32

// streamCaches is how many times the cache of its threads a backend's fields must exceed for stores past the caches to pay.
const streamCaches = 48

// Backend implements solver.Backend.
type Backend struct {
	mesh      solver.Mesh
	stripe    solver.Stripe
	depth     int
	neighbour [2]bool
	sweepable solver.Stripe // rows that a sweep may update: all but fixed ones and the outermost of a halo
	layout    rowLayout
	kernel    kernel.Kernel
	masks     edgeMasks
	plans     []plan // by number of sweeps
	stream    bool   // the fields are too large to be found in a cache in the next pass
	now, next *field
	pool      *pool
	edged     *solver.Block // the block whose edges are done and whose interior is not
	middle    solver.Stripe // what its interior has left to do
	undoable  bool
	last      solver.Block // the newest block
	sums      []solver.Sum
}

// New allocates a backend. Its memory is touched, and so given, only by Load.
func New(l solver.Layout, o Options) (*Backend, error) {
	if err := check(l); err != nil {
		return nil, fmt.Errorf("cpu backend: %w", err)
	}
	k, err := kernel.Find(o.Kernel, l.Mesh.DType)
	if err != nil {
		return nil, err
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Threads < 0 || o.Cache < 0 {
		return nil, fmt.Errorf("cpu backend: %d threads, %d bytes of cache: neither can be negative", o.Threads, o.Cache)
	}
	if o.Cache == 0 {
		o.Cache = scratchCache()
	}
	b := &Backend{mesh: l.Mesh, stripe: l.Stripe, depth: l.Depth, neighbour: l.Neighbour, kernel: k}
	b.layout = newRowLayout(l.Mesh, k)
	b.masks = newEdgeMasks(b.layout)
	rows := b.storedRows()
	b.sweepable = solver.Stripe{Lo: rows.Lo + 1, Hi: rows.Hi - 1}
	scratch := 0
	for t := range max(leastMaxSweeps, l.Depth) + 1 {
		b.plans = append(b.plans, newPlan(b.layout, max(t, 1), o.Cache))
		scratch = max(scratch, b.plans[t].bytes())
	}
	b.stream = k.Stream != nil && 2*fieldBytes(rows, b.layout) > o.Threads*streamCaches*o.Cache
	if b.now, err = newField(rows, b.layout); err == nil {
		b.next, err = newField(rows, b.layout)
	}
	if err == nil {
		b.pool, err = newPool(b, o.Threads, scratch, l.Magnitude)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cpu backend: %w", err), b.Close())
	}
	return b, nil
}

func check(l solver.Layout) error {
	m, s := l.Mesh, l.Stripe
	switch {
	case m.NX < 3 || m.NY < 3:
		return fmt.Errorf("mesh %d x %d: at least 3 x 3 is needed", m.NX, m.NY)
	case m.DType != solver.Float32 && m.DType != solver.Float64:
		return fmt.Errorf("%v: allowed are float32 and float64", m.DType)
	case l.Depth < 1:
		return fmt.Errorf("halo depth %d: at least 1 is needed", l.Depth)
	case s.Lo < 1 || s.Hi > m.NY-1 || s.Rows() < l.Depth:
		return fmt.Errorf("stripe %v: it must lie in %v and hold at least %d rows", s, m.Interior(), l.Depth)
	case s.Lo != 1 && s.Lo%solver.GroupRows != 0 || s.Hi != m.NY-1 && s.Hi%solver.GroupRows != 0:
		return fmt.Errorf("stripe %v: it must begin and end at multiples of %d or where the interior does", s, solver.GroupRows)
	case !l.Neighbour[solver.Top] && (s.Lo != 1 || m.Periodic), !l.Neighbour[solver.Bottom] && (s.Hi != m.NY-1 || m.Periodic):
		return fmt.Errorf("stripe %v: the mesh goes on beyond a side without neighbour", s)
	}
	return nil
}

// storedRows returns the rows of a field: the stripe and, on each side, the halo or the fixed row.
func (b *Backend) storedRows() solver.Stripe {
	rows := solver.Stripe{Lo: b.stripe.Lo - 1, Hi: b.stripe.Hi + 1}
	if b.neighbour[solver.Top] {
		rows.Lo = b.stripe.Lo - b.depth
	}
	if b.neighbour[solver.Bottom] {
		rows.Hi = b.stripe.Hi + b.depth
	}
	return rows
}

// Describe names the kernel and the number of threads, as in "cpu avx512, 2 threads".
func (b *Backend) Describe() string {
	threads := fmt.Sprintf("%d threads", len(b.pool.workers))
	if len(b.pool.workers) == 1 {
		threads = "1 thread"
	}
	return fmt.Sprintf("cpu %s, %s", b.kernel.Name, threads)
}

// Limits implements solver.Backend.
func (b *Backend) Limits() solver.Limits {
	bytes := len(b.now.memory) + len(b.next.memory)
	for _, w := range b.pool.workers {
		bytes += len(w.scratch)
	}
	return solver.Limits{MaxSweeps: len(b.plans) - 1, Bytes: int64(bytes)}
}

// Close stops the threads and gives the memory back.
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

// Load implements solver.Backend. Each thread writes, and so places in memory, the rows that it will sweep.
func (b *Backend) Load(ctx context.Context, source solver.RowSource) error {
	b.edged, b.undoable = nil, false
	stored := b.now.rows
	parts := b.split(b.stripe)
	parts[0].Lo, parts[len(parts)-1].Hi = stored.Lo, stored.Hi
	return b.pool.each(len(parts), func(_ *worker, i int) error {
		buf := make([]byte, b.mesh.RowBytes())
		for y := parts[i].Lo; y < parts[i].Hi; y++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			row, ok := b.mesh.Canonical(y)
			if !ok {
				return fmt.Errorf("row %d does not exist", y)
			}
			if err := source.Row(row, buf); err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			b.layout.pack(b.now.row(y), buf)
			b.layout.pack(b.next.row(y), buf)
		}
		return nil
	})
}

// CopyEdge implements solver.Backend.
func (b *Backend) CopyEdge(_ context.Context, side solver.Side, dst []byte) error {
	if b.edged == nil {
		return errors.New("cpu backend: an edge was asked for that is not computed")
	}
	lo := b.stripe.Lo
	if side == solver.Bottom {
		lo = b.stripe.Hi - b.depth
	}
	return b.unpack(b.next, solver.Stripe{Lo: lo, Hi: lo + b.depth}, dst)
}

// SetHalo implements solver.Backend.
func (b *Backend) SetHalo(_ context.Context, side solver.Side, src []byte) error {
	n := b.mesh.RowBytes()
	if !b.neighbour[side] || len(src) != b.depth*n {
		return fmt.Errorf("cpu backend: halo at the %v of %d bytes: expected %d, from a neighbour", side, len(src), b.depth*n)
	}
	y := b.stripe.Lo - b.depth
	if side == solver.Bottom {
		y = b.stripe.Hi
	}
	for i := range b.depth {
		b.layout.pack(b.now.row(y+i), src[i*n:(i+1)*n])
	}
	return nil
}

// CopyRows implements solver.Backend.
func (b *Backend) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	if s.Lo < b.stripe.Lo || s.Hi > b.stripe.Hi || s.Lo > s.Hi {
		return fmt.Errorf("cpu backend: rows %v: the stripe is %v", s, b.stripe)
	}
	return b.unpack(b.now, s, dst)
}

func (b *Backend) unpack(f *field, s solver.Stripe, dst []byte) error {
	n := b.mesh.RowBytes()
	if len(dst) != s.Rows()*n {
		return fmt.Errorf("cpu backend: rows %v need %d bytes, not %d", s, s.Rows()*n, len(dst))
	}
	for i := range s.Rows() {
		b.layout.unpack(dst[i*n:(i+1)*n], f.row(s.Lo+i))
	}
	return nil
}
