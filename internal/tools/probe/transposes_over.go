package probe

import (
	"context"
	"errors"

	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

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
		return d.Each(func(i int) error {
			for k, at := range d.shares[i].stages {
				for _, f := range do {
					if err := f(i, k, at.stream); err != nil {
						return err
					}
				}
			}
			return nil
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
