package probe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

// word is a value of a matrix, by its size.
type word interface{ uint32 | uint64 }

// matrix is the size of a matrix: ny rows of nx values. The value at index i is wordAt(i).
type matrix[T word] struct{ nx, ny int }

// wordAt returns the value at index i of a matrix: its low bytes differ between neighbours, and all of them between
// places that are mixed up easily.
func wordAt[T word](i int) T {
	h := (uint64(i) + 1) * 0x9E3779B97F4A7C15
	return T(h ^ h>>32)
}

// bytes returns the size of n values, and all that of the matrix.
func (m matrix[T]) bytes(n int) int { return n * int(unsafe.Sizeof(T(0))) }
func (m matrix[T]) all() int64      { return int64(m.bytes(m.nx * m.ny)) }

func (m matrix[T]) String() string {
	return fmt.Sprintf("%d x %d values of %d bytes", m.nx, m.ny, m.bytes(1))
}

func (m matrix[T]) kernel(name string) string { return fmt.Sprintf("%s_f%d", name, 8*m.bytes(1)) }

func (m matrix[T]) rows(lo, hi int) []T {
	v := make([]T, (hi-lo)*m.nx)
	onCores(len(v), func(_, from, to int) {
		for i := from; i < to; i++ {
			v[i] = wordAt[T](lo*m.nx + i)
		}
	})
	return v
}

// check compares v with what index i of it must come from in the matrix. The error names a difference.
func (m matrix[T]) check(v []T, index func(i int) int) error {
	var once sync.Once
	var wrong error
	onCores(len(v), func(_, from, to int) {
		for i := from; i < to; i++ {
			if want := wordAt[T](index(i)); v[i] != want {
				once.Do(func() { wrong = fmt.Errorf("value %d of the result is %#x, not %#x", i, v[i], want) })
				return
			}
		}
	})
	return wrong
}

// transposed returns the index in the matrix of value i of its transpose from row lo on, and copied that of a copy.
func (m matrix[T]) transposed(lo int) func(i int) int {
	return func(i int) int { return i%m.ny*m.nx + lo + i/m.ny }
}

func copied(i int) int { return i }

func raw[T word](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(T(0))))
}

// transposes measures the transpose of a matrix within each GPU, over several GPUs, and on the CPU. Every result is
// compared with the matrix value by value.
func transposes(ctx context.Context, m *Machine) (r Result, err error) {
	of := transposesOf[uint32]
	if m.DType == "float64" {
		of = transposesOf[uint64]
	}
	err = of(ctx, m, &r)
	return r, err
}

func transposesOf[T word](ctx context.Context, m *Machine, r *Result) (err error) {
	within, large, small := matrix[T]{8192, 8192}, matrix[T]{16384, 12288}, matrix[T]{4096, 3072}
	add := func(device, figures string, size matrix[T], rows []row, failed error) {
		if err = failed; err == nil {
			r.showRows(fmt.Sprintf("%s, %v", device, size), "transposes."+figures, rows)
		}
	}
	for i := 0; err == nil && i < len(m.GPUs); i++ {
		rows, failed := within.onGPU(ctx, &m.GPUs[i])
		add(fmt.Sprintf("GPU %d", m.GPUs[i].Index), fmt.Sprintf("gpu%d", m.GPUs[i].Index), within, rows, failed)
	}
	if len(m.GPUs) == 0 {
		r.skip("no GPU: %v; the CPU was measured", m.NoGPU)
	} else if err == nil {
		rows, failed := large.overGPUs(ctx, m.GPUs, r)
		add("over GPUs", "over", large, rows, failed)
	}
	if err == nil {
		rows, failed := small.onCPU(ctx)
		add("the CPU", "cpu", small, rows, failed)
	}
	return err
}

// onCPU measures transposes in Go on all cores, a copy first: naive goes through the matrix row by row, so it writes a
// new cache line for each value; blocked goes through it tile by tile, so lines stay in the cache until they are full.
func (m matrix[T]) onCPU(ctx context.Context) ([]row, error) {
	in, out := m.rows(0, m.ny), make([]T, m.nx*m.ny)
	run := func(name string, rows int, do func(lo, hi int), index func(i int) int) way {
		return way{name, gpu.Wall(func() error {
			onCores(rows, func(_, lo, hi int) { do(lo, hi) })
			return nil
		}), func() (float64, error) {
			err := m.check(out, index)
			clear(out)
			return 0, err
		}}
	}
	rows, err := measure(ctx, 2*m.all(), []way{
		run("copy", len(in), func(lo, hi int) { copy(out[lo:hi], in[lo:hi]) }, copied),
		run("naive", m.ny, func(lo, hi int) { m.naive(out, in, lo, hi) }, m.transposed(0)),
		run("blocked", m.ny, func(lo, hi int) { m.blocked(out, in, lo, hi) }, m.transposed(0)),
	})
	if err != nil {
		return nil, err
	}
	return relate(rows, rows[0].rate), nil
}

func (m matrix[T]) naive(out, in []T, lo, hi int) {
	for y := lo; y < hi; y++ {
		for x, v := range in[y*m.nx : (y+1)*m.nx] {
			out[x*m.ny+y] = v
		}
	}
}

// blocked turns each tile in a buffer, as the kernels do in shared memory: rows of the matrix and of its transpose that
// are a power of two of bytes apart fall into few sets of a cache, so a tile cannot stay there. Two tiles of 8-byte
// values fill half of a first-level cache of 32 KiB.
func (m matrix[T]) blocked(out, in []T, lo, hi int) {
	const side = 32
	var buffer [side * side]T
	for y0 := lo; y0 < hi; y0 += side {
		height := min(side, hi-y0)
		for x0 := 0; x0 < m.nx; x0 += side {
			width := min(side, m.nx-x0)
			for y := range height {
				for x, v := range in[(y0+y)*m.nx+x0:][:width] {
					buffer[x*side+y] = v
				}
			}
			for x := range width {
				copy(out[(x0+x)*m.ny+y0:][:height], buffer[x*side:])
			}
		}
	}
}

// part is the argument of the kernels, Part of probe_tile.cuh.
type part struct {
	in, out           driver.DevicePtr
	inPitch, outPitch int64 // values
	nx, ny            int32
}

// tiles queues a kernel whose blocks move tiles with the given side.
func (p part) tiles(k gpu.Kernel, s *driver.Stream, side int32) error {
	return k.Queue(s, int((p.nx+side-1)/side), int((p.ny+side-1)/side))
}

// The kernel that the transpose over several GPUs uses, and the side of its tiles.
const (
	wide     = "probe_transpose_wide"
	wideTile = 64
)

// tileKernels lists the kernels in the order in which they are taught, with the sides of their tiles.
var tileKernels = []struct {
	name       string
	side       int32
	transposes bool
}{
	{"probe_copy", 32, false}, {"probe_copy_shared", 32, false},
	{"probe_transpose_naive", 32, true}, {"probe_transpose_coalesced", 32, true}, {"probe_transpose_padded", 32, true},
	{wide, wideTile, true},
}

// onGPU measures the kernels, the driver's copy of the same bytes first.
func (m matrix[T]) onGPU(ctx context.Context, v *driver.Device) (rows []row, err error) {
	err = gpu.With(v, func(g *gpu.GPU) error {
		p := part{in: g.Alloc(m.all()), out: g.Alloc(m.all()), inPitch: int64(m.nx), nx: int32(m.nx), ny: int32(m.ny)}
		if g.Err() != nil {
			return g.Err()
		}
		host := m.rows(0, m.ny)
		if err := errors.Join(g.Context.CopyToDevice(p.in, raw(host)),
			g.Stream.Fill(p.out, 0xff, int(m.all()))); err != nil {
			return err
		}
		run := func(name string, index func(i int) int, queue func() error) way {
			return way{name, g.Timed(g.Stream, queue), func() (float64, error) {
				err := g.Context.CopyFromDevice(raw(host), p.out)
				return 0, errors.Join(err, m.check(host, index), g.Stream.Fill(p.out, 0xff, int(m.all())))
			}}
		}
		ways := []way{run("copy by the driver", copied, func() error {
			return g.Stream.CopyOnDevice(p.out, p.in, int(m.all()))
		})}
		for _, k := range tileKernels {
			arg, index := p, m.transposed(0)
			if arg.outPitch = int64(m.ny); !k.transposes {
				arg.outPitch, index = int64(m.nx), copied
			}
			f := g.Kernel(m.kernel(k.name), &arg)
			ways = append(ways, run(k.name, index, func() error { return arg.tiles(f, g.Stream, k.side) }))
		}
		if g.Err() != nil {
			return g.Err()
		}
		if rows, err = measure(ctx, 2*m.all(), ways); err == nil {
			rows = relate(rows, rows[0].rate)
		}
		return err
	})
	return rows, err
}

// block is what GPU `to` transposes in one stage: a block of the matrix that GPU `from` holds. The matrix of ny rows is
// divided among the GPUs by rows, and so is the transpose of nx rows. On four GPUs the slices of a matrix of 1024 x 768
// are 1024 x 192 values of the matrix and 768 x 256 of the transpose; a block has 256 x 192 values.
//
//	stage 0   every GPU transposes the block on the diagonal, which it holds itself
//	stage s   every GPU fetches its block from the s-th GPU after it, modulo their number, and transposes it
//
// In each stage every GPU gives one block and takes one, so all links between GPUs are in use in both directions.
type block struct {
	from, to int
	rows     [2]int // of the matrix, [lo, hi): the slice of `from`
	columns  [2]int // of the matrix: rows of the transpose in the slice of `to`
}

// blockOf returns the block of a GPU in a stage.
func (m matrix[T]) blockOf(to, stage, gpus int) block {
	from := (to + stage) % gpus
	return block{from, to, slice(m.ny, from, gpus), slice(m.nx, to, gpus)}
}

// slice is the part [lo, hi) of n rows that GPU i of several has.
func slice(n, i, gpus int) [2]int { return [2]int{n * i / gpus, n * (i + 1) / gpus} }

func (b block) height() int { return b.rows[1] - b.rows[0] }
func (b block) width() int  { return b.columns[1] - b.columns[0] }

// divided is a matrix that is divided among GPUs.
type divided[T word] struct {
	matrix[T]
	*gpu.Crew
	peers  bool
	shares []share // by GPU
}

// share is what one GPU holds.
type share struct {
	in, out driver.DevicePtr // slices of the matrix and of the transpose
	arg     *part
	kernel  gpu.Kernel
	stages  []stage
}

// stage is what one GPU has for a stage.
type stage struct {
	stream  *driver.Stream
	block   driver.DevicePtr   // that was fetched
	staging *driver.HostMemory // where GPUs have no access to each other
	staged  *driver.Event      // the block for the GPU that fetches it lies in host memory
}

// overGPUs measures the transpose on the first 1, 2, 4... and all GPUs. Blocking queues one operation on every GPU and
// waits for all GPUs, as a program does that uses the default stream. Asynchronous gives every GPU a stream for each
// stage and waits once. The matrix has at least as many rows and columns as there are GPUs.
func (m matrix[T]) overGPUs(ctx context.Context, devices []driver.Device, r *Result) ([]row, error) {
	return over(len(devices), func(gpus int) (rows []row, err error) {
		err = gpu.WithCrew(devices[:gpus], func(c *gpu.Crew) error {
			d := &divided[T]{matrix: m, Crew: c, peers: c.Peers(), shares: make([]share, gpus)}
			if !d.peers {
				r.find("%d GPUs have no access to each other's memory: blocks go through the host", gpus)
			}
			err := c.Each(d.load)
			if err == nil {
				rows, err = measure(ctx, 2*m.all(), []way{
					{"blocking", c.Timed(d.blocking), d.check}, {"asynchronous", c.Timed(d.asynchronous), d.check},
				})
			}
			return err
		})
		return rows, err
	})
}

// load allocates the share of GPU i and fills its slice of the matrix.
func (d *divided[T]) load(i int) (err error) {
	g, n, s := d.GPUs[i], len(d.GPUs), &d.shares[i]
	mine, out := slice(d.ny, i, n), slice(d.nx, i, n)
	host := d.rows(mine[0], mine[1])
	s.in, s.out = g.Alloc(int64(len(raw(host)))), g.Alloc(int64(d.bytes((out[1]-out[0])*d.ny)))
	s.arg = new(part)
	s.kernel = g.Kernel(d.kernel(wide), s.arg)
	s.stages = make([]stage, n)
	for k := range n {
		b, at := d.blockOf(i, k, n), &s.stages[k]
		size := d.bytes(b.width() * b.height())
		if at.stream = g.NewStream(); k == 0 {
			continue
		}
		if at.block = g.Alloc(int64(size)); !d.peers {
			at.staged = g.NewEvent()
			if at.staging, err = g.Pinned(size); err != nil {
				return err
			}
		}
	}
	if g.Err() != nil {
		return g.Err()
	}
	return errors.Join(g.Context.CopyToDevice(s.in, raw(host)),
		g.Stream.Fill(s.out, 0xff, d.bytes((out[1]-out[0])*d.ny)))
}

// check compares the transpose with the matrix, and clears it.
func (d *divided[T]) check() (float64, error) {
	return 0, d.Each(func(i int) error {
		g, rows := d.GPUs[i], slice(d.nx, i, len(d.shares))
		host := make([]T, (rows[1]-rows[0])*d.ny)
		err := g.Context.CopyFromDevice(raw(host), d.shares[i].out)
		return errors.Join(err, d.matrix.check(host, d.transposed(rows[0])),
			g.Stream.Fill(d.shares[i].out, 0xff, len(raw(host))))
	})
}

// blocking does one operation at a time on every GPU.
func (d *divided[T]) blocking() error {
	for k := range d.shares {
		for _, do := range []func(i, k int, s *driver.Stream) error{d.stage, d.fetch, d.transpose} {
			err := d.Each(func(i int) error {
				return errors.Join(do(i, k, d.GPUs[i].Stream), d.GPUs[i].Stream.Synchronize())
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// asynchronous queues all stages of all GPUs, each on a stream of its own, and waits for them. The events of stage are
// recorded before fetch waits for them.
func (d *divided[T]) asynchronous() error {
	queue := func(do ...func(i, k int, s *driver.Stream) error) error {
		return d.Each(func(i int) (err error) {
			for k, at := range d.shares[i].stages {
				for _, f := range do {
					if err == nil {
						err = f(i, k, at.stream)
					}
				}
			}
			return err
		})
	}
	if !d.peers {
		if err := queue(d.stage); err != nil {
			return err
		}
	}
	return errors.Join(queue(d.fetch, d.transpose), d.Synchronize())
}

// rowsOf returns the rows of b in the slice of the GPU that holds it.
func (d *divided[T]) rowsOf(b block) driver.Rows {
	return (d.shares[b.from].in + driver.DevicePtr(d.bytes(b.columns[0]))).Rows(d.bytes(d.nx))
}

// stage copies, where GPUs have no access to each other, the block that another GPU takes from GPU i to host memory.
func (d *divided[T]) stage(i, k int, s *driver.Stream) error {
	if k == 0 || d.peers {
		return nil
	}
	n := len(d.shares)
	b := d.blockOf((i-k+n)%n, k, n)
	to := d.shares[b.to].stages[k].staging.Rows(0, d.bytes(b.width()))
	return errors.Join(s.Copy2D(to, d.rowsOf(b), d.bytes(b.width()), b.height()),
		d.shares[i].stages[k].staged.Record(s))
}

// fetch copies GPU i's block of a stage into its memory.
func (d *divided[T]) fetch(i, k int, s *driver.Stream) error {
	b, at := d.blockOf(i, k, len(d.shares)), d.shares[i].stages[k]
	switch {
	case k == 0:
		return nil
	case d.peers:
		return s.Copy2D(at.block.Rows(d.bytes(b.width())), d.rowsOf(b), d.bytes(b.width()), b.height())
	}
	return errors.Join(s.Wait(d.shares[b.from].stages[k].staged),
		s.CopyToDevice(at.block, at.staging, 0, d.bytes(b.width()*b.height())))
}

// transpose transposes GPU i's block of a stage into its slice of the transpose.
func (d *divided[T]) transpose(i, k int, s *driver.Stream) error {
	b, mine := d.blockOf(i, k, len(d.shares)), d.shares[i]
	*mine.arg = part{in: mine.stages[k].block, inPitch: int64(b.width()), nx: int32(b.width()), ny: int32(b.height()),
		out: mine.out + driver.DevicePtr(d.bytes(b.rows[0])), outPitch: int64(d.ny)}
	if k == 0 {
		mine.arg.in, mine.arg.inPitch = mine.in+driver.DevicePtr(d.bytes(b.columns[0])), int64(d.nx)
	}
	return mine.arg.tiles(mine.kernel, s, wideTile)
}
