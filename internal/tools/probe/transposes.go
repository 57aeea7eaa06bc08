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

// bytes returns the size of n values.
func (m matrix[T]) bytes(n int) int { return n * int(unsafe.Sizeof(T(0))) }

// all returns the size of the matrix in bytes.
func (m matrix[T]) all() int64 { return int64(m.bytes(m.nx * m.ny)) }

func (m matrix[T]) String() string {
	return fmt.Sprintf("%d x %d values of %d bytes", m.nx, m.ny, m.bytes(1))
}

// kernel returns the name of a kernel for the matrix.
func (m matrix[T]) kernel(name string) string { return fmt.Sprintf("%s_f%d", name, 8*m.bytes(1)) }

// rows returns rows [lo, hi).
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

// raw returns the bytes of values.
func raw[T word](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(T(0))))
}

// transposes measures the transpose of a matrix within each GPU, over several GPUs, and on the CPU. Every result is
// compared with the matrix value by value.
func transposes(ctx context.Context, m *Machine) (r Result, err error) {
	if m.DType == "float64" {
		err = transposesOf[uint64](ctx, m, &r)
	} else {
		err = transposesOf[uint32](ctx, m, &r)
	}
	return r, err
}

func transposesOf[T word](ctx context.Context, m *Machine, r *Result) error {
	within, large, small := matrix[T]{8192, 8192}, matrix[T]{16384, 12288}, matrix[T]{4096, 3072}
	for i := range m.GPUs {
		rows, err := within.onGPU(ctx, &m.GPUs[i])
		if err != nil {
			return err
		}
		index := m.GPUs[i].Index
		r.showRows(fmt.Sprintf("GPU %d, %v", index, within), fmt.Sprintf("transposes.gpu%d", index), rows)
	}
	if len(m.GPUs) > 0 {
		rows, err := large.overGPUs(ctx, m.GPUs, r)
		if err != nil {
			return err
		}
		r.showRows("over GPUs, "+large.String(), "transposes.over", rows)
	} else {
		r.skip("no GPU: %v; the CPU was measured", m.NoGPU)
	}
	rows, err := small.onCPU(ctx)
	if err == nil {
		r.showRows("the CPU, "+small.String(), "transposes.cpu", rows)
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

// onGPU measures the kernels in the order in which they are taught, the driver's copy of the same bytes first.
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
		for _, k := range []struct {
			name  string
			side  int32
			index func(i int) int
			pitch int
		}{
			{"probe_copy", 32, copied, m.nx},
			{"probe_copy_shared", 32, copied, m.nx},
			{"probe_transpose_naive", 32, m.transposed(0), m.ny},
			{"probe_transpose_coalesced", 32, m.transposed(0), m.ny},
			{"probe_transpose_padded", 32, m.transposed(0), m.ny},
			{wide, wideTile, m.transposed(0), m.ny},
		} {
			arg := p
			arg.outPitch = int64(k.pitch)
			f := g.Kernel(m.kernel(k.name), &arg)
			ways = append(ways, run(k.name, k.index, func() error { return arg.tiles(f, g.Stream, k.side) }))
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
