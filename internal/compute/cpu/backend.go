// Package cpu is the backend that sweeps a stripe on the processor: SIMD kernels on one or more threads do several
// sweeps in one pass over the memory. See plan for the order of the work and rowLayout for the order of the data.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/huge"
	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
)

// Options choose how a Backend works. They do not change any result.
type Options struct {
	Threads int    // 0: one for each core
	Kernel  string // one of kernel.Names(); "": the best
	Cache   int    // bytes of cache that a thread's scratch may fill; 0: half of the second-level cache
	// ThreadsPerCore is the number of busy threads, of all ranks of the node, that take turns on a core; 0: 1.
	ThreadsPerCore int
}

// complete returns o with defaults for this machine in place of zeros.
func (o Options) complete() Options {
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Cache == 0 {
		o.Cache = scratchCache()
	}
	o.ThreadsPerCore = max(1, o.ThreadsPerCore)
	return o
}

// slack allows for the rounding of a sum of fractions.
const slack = 1e-6

// ThreadsOn returns the number of threads for a share of the cores.
func ThreadsOn(cores float64) int { return max(1, int(cores+slack)) }

// PerCoreOn returns how many of the busy threads take turns on a core if they share the given number of cores.
func PerCoreOn(threads int, cores float64) int {
	return max(1, int(math.Ceil(float64(threads)/cores-slack)))
}

// Stores that bypass the caches pay if the backend's fields, with those of the ranks that share its cores, are larger
// than streamCaches times the cache of its threads.
const streamCaches = 48

// Backend implements solver.Backend.
type Backend struct {
	layout    solver.Layout
	columns   rowLayout
	sweepable solver.Stripe // rows that a sweep may update: all but the fixed rows and the outermost row of a halo
	kernel    kernel.Kernel
	operator  *operator
	functions kernel.Functions // for the operator
	plans     []plan           // by number of sweeps
	// sweepAll makes Edges sweep the whole stripe. Where ranks take turns on a core, there is no free core to sweep the
	// interior while halos travel.
	sweepAll  bool
	stream    bool // stores bypass the caches: the fields are too large to stay in them until the next pass
	now, next *field
	fields    []*field // these two and those of the operator
	pool      *pool
	edged     bool          // Edges has swept a part of the pass
	middle    solver.Stripe // the rows that it has left to Interior
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
	b, threads, scratch, err := newBackend(l, o)
	if err != nil {
		return nil, err
	}
	if err = b.open(threads, scratch); err != nil {
		return nil, errors.Join(fmt.Errorf("cpu backend: %w", err), b.Close())
	}
	return b, nil
}

// MemoryBytes returns the number of bytes that New allocates: two fields, the values and the fixed points of the
// operator, and the scratch of each thread.
func MemoryBytes(l solver.Layout, o Options) (int64, error) {
	b, threads, scratch, err := newBackend(l, o)
	if err != nil {
		return 0, err
	}
	return bytesOf(b.fields) + int64(threads)*int64(scratch), nil
}

// newBackend returns a backend without memory, and the threads and the bytes of scratch for each that it needs.
func newBackend(l solver.Layout, o Options) (b *Backend, threads, scratch int, err error) {
	o = o.complete()
	k, err := kernel.Find(o.Kernel, l.Mesh.DType)
	if err != nil {
		return nil, 0, 0, err
	}
	b = &Backend{layout: l, kernel: k, sweepAll: o.ThreadsPerCore > 1}
	b.columns = newRowLayout(l.Mesh, k)
	b.sweepable = sweepable(l, l.Held())
	b.plans, scratch = newPlans(l, b.columns, o.Cache)
	b.operator = newOperator(l, b.columns)
	b.functions = k.ByOperator[b.operator.kind]
	b.now, b.next = newField(l.Held(), b.columns.stride), newField(l.Held(), b.columns.stride)
	b.fields = append([]*field{b.now, b.next}, b.operator.fields()...)
	b.stream = b.functions.Whole.Stream != nil && 2*o.ThreadsPerCore*b.now.bytes() > o.Threads*streamCaches*o.Cache
	return b, o.Threads, scratch, nil
}

func bytesOf(fields []*field) (bytes int64) {
	for _, f := range fields {
		bytes += int64(f.bytes())
	}
	return bytes
}

// open allocates the memory and starts the threads.
func (b *Backend) open(threads, scratch int) (err error) {
	for _, f := range b.fields {
		if err := f.open(); err != nil {
			return err
		}
	}
	b.operator.open()
	b.pool, err = newPool(b, threads, scratch, b.layout.Magnitude)
	return err
}

// Describe names the kernel and the number of threads, as in "cpu avx512, 2 threads".
func (b *Backend) Describe() string {
	threads := fmt.Sprintf("%d threads", len(b.pool.workers))
	if len(b.pool.workers) == 1 {
		threads = "1 thread"
	}
	return fmt.Sprintf("cpu %s, %s", b.kernel.Name, threads)
}

// Kernel returns the name of the kernel, one of kernel.Names().
func (b *Backend) Kernel() string { return b.kernel.Name }

// Limits implements solver.Backend.
func (b *Backend) Limits() solver.Limits {
	bytes := bytesOf(b.fields)
	for _, w := range b.pool.workers {
		bytes += int64(len(w.scratch))
	}
	return solver.Limits{MaxSweeps: len(b.plans) - 1, Bytes: bytes}
}

// Close stops the threads and frees the memory.
func (b *Backend) Close() error {
	var errs []error
	if b.pool != nil {
		errs = append(errs, b.pool.close())
		b.pool = nil
	}
	for _, f := range b.fields {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// Load implements solver.Backend. Each thread is the first to write the rows that it will sweep, so the system places
// them near it.
func (b *Backend) Load(ctx context.Context, source solver.RowSource) error {
	b.edged = false
	stored := b.now.rows
	parts := b.split(b.layout.Stripe)
	parts[0].Lo, parts[len(parts)-1].Hi = stored.Lo, stored.Hi
	return b.pool.each(len(parts), func(_ *worker, i int) error {
		buf, points := make([]byte, b.layout.Mesh.RowBytes()), make([]bool, b.layout.Mesh.NX)
		from, row := solver.RowsOf(source), make([]byte, len(buf))
		for y := parts[i].Lo; y < parts[i].Hi; y++ {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			canonical, ok := b.layout.Mesh.Canonical(y)
			if !ok {
				return fmt.Errorf("row %d does not exist", y)
			}
			first := y == parts[i].Lo
			if first || !from.Repeats(b.layout.Mesh, y) {
				if err := from.Row(canonical, row); err != nil {
					return fmt.Errorf("row %d: %w", canonical, err)
				}
			}
			b.columns.pack(b.now.row(y), row)
			b.columns.pack(b.next.row(y), row)
			if err := b.operator.load(b.layout.Mesh, y, canonical, !first, buf, points); err != nil {
				return err
			}
		}
		return nil
	})
}

// HaloBytes implements solver.Backend.
func (b *Backend) HaloBytes() [2]int { return b.layout.HaloBytes() }

// CopyEdge implements solver.Backend.
func (b *Backend) CopyEdge(_ context.Context, side solver.Side, dst []byte) error {
	if err := b.layout.CheckSide(side, len(dst)); err != nil {
		return fmt.Errorf("cpu backend: edge: %w", err)
	}
	b.unpack(b.next, b.layout.Edge(side), dst)
	return nil
}

// SetHalo implements solver.Backend.
func (b *Backend) SetHalo(_ context.Context, side solver.Side, src []byte) error {
	if err := b.layout.CheckSide(side, len(src)); err != nil {
		return fmt.Errorf("cpu backend: halo: %w", err)
	}
	n, top := b.layout.Mesh.RowBytes(), b.layout.Halo(side).Lo
	for i := range b.layout.Depth {
		b.columns.pack(b.now.row(top+i), src[i*n:(i+1)*n])
	}
	return nil
}

// CopyRows implements solver.Backend.
func (b *Backend) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	if err := b.layout.CheckCopy(s, len(dst)); err != nil {
		return fmt.Errorf("cpu backend: %w", err)
	}
	b.unpack(b.now, s, dst)
	return nil
}

// unpack copies rows of f to dst, dense.
func (b *Backend) unpack(f *field, s solver.Stripe, dst []byte) {
	n := b.layout.Mesh.RowBytes()
	for i := range s.Rows() {
		b.columns.unpack(dst[i*n:(i+1)*n], f.row(s.Lo+i))
	}
}

// field holds rows [rows.Lo, rows.Hi) of the mesh, numbered as in solver.Layout: halo rows may be negative or beyond
// the mesh. A vector before the first row and one after the last are readable. With a stride of 0 all rows are one.
type field struct {
	memory memory
	rows   solver.Stripe
	stride int
	shared int // bytes of the one row, if the stride is 0
}

// newField returns a field without memory.
func newField(rows solver.Stripe, stride int) *field { return &field{rows: rows, stride: stride} }

// newSharedRow is newField for rows that are all one.
func newSharedRow(rows solver.Stripe, bytes int) *field { return &field{rows: rows, shared: bytes} }

// bytes returns the bytes of memory that the field takes.
func (f *field) bytes() int { return f.rows.Rows()*f.stride + f.shared + 2*cacheLine }

func (f *field) open() (err error) {
	f.memory, err = newMemory(f.bytes())
	return err
}

// close frees the memory. A second call does nothing.
func (f *field) close() error {
	m := f.memory
	f.memory = nil
	return m.free()
}

// row returns the address of row y, a multiple of a cache line.
func (f *field) row(y int) unsafe.Pointer {
	return unsafe.Add(f.memory.pointer(), cacheLine+(y-f.rows.Lo)*f.stride)
}

// memory is anonymous, zeroed memory outside the Go heap: the garbage collector neither scans nor counts it, and a page
// lands near the thread that first touches it.
type memory []byte

func newMemory(bytes int) (memory, error) {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	huge.Advise(m)
	return m, nil
}

func (m memory) pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData([]byte(m))) }

func (m memory) free() error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}
