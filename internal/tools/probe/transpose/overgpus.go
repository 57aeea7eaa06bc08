package transpose

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

// The ways to queue work. Blocking queues one operation on every GPU and waits for all GPUs, as a program does that
// uses the default stream. Asynchronous gives every GPU a stream for each stage and waits once.
const (
	Blocking     = "blocking"
	Asynchronous = "asynchronous"
)

// The ways of blocks between GPUs.
const (
	ByPeer  = "peer memory"
	ByHost  = "host memory"
	without = "none" // one GPU
)

// over is a matrix that is divided among GPUs.
type over struct {
	Matrix
	crew   *gpu.Crew
	shares []*share // by GPU
}

// share is what one GPU holds.
type share struct {
	in, out driver.DevicePtr   // slices of the matrix and of the transpose
	blocks  []driver.DevicePtr // by stage, from 1: the block that was fetched
	staging []*driver.HostMemory
	streams []*driver.Stream // by stage
	staged  []*driver.Event  // by stage: the block for the GPU that fetches it lies in host memory
	kernel  *kernel
}

// OverGPUs measures the transpose of m on the first 1, 2, 4... and all GPUs, for both ways to queue work. The matrix
// has at least as many rows and columns as there are GPUs.
func OverGPUs(ctx context.Context, devices []driver.Device, m Matrix) (all []Over, err error) {
	single := map[string]float64{} // seconds of one GPU
	for _, n := range gpu.Counts(len(devices)) {
		found, err := onSome(ctx, devices[:n], m)
		if err != nil {
			return all, fmt.Errorf("transpose over %d GPUs: %w", n, err)
		}
		for _, o := range found {
			if n == 1 {
				single[o.Queues] = o.Seconds
			}
			o.SpeedUp = single[o.Queues] / o.Seconds
			o.Efficiency = o.SpeedUp / float64(n)
			all = append(all, o)
		}
	}
	return all, nil
}

func onSome(ctx context.Context, devices []driver.Device, m Matrix) (all []Over, err error) {
	crew, err := gpu.OpenCrew(devices)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, crew.Close()) }()
	o := &over{Matrix: m, crew: crew, shares: make([]*share, len(devices))}
	if err := crew.Each(o.load); err != nil {
		return nil, err
	}
	way := without
	switch {
	case len(devices) > 1 && crew.Peers:
		way = ByPeer
	case len(devices) > 1:
		way = ByHost
	}
	for _, run := range []struct {
		queues string
		do     func() error
	}{{Blocking, o.blocking}, {Asynchronous, o.asynchronous}} {
		took, err := o.fastest(ctx, run.do)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", run.queues, err)
		}
		all = append(all, Over{GPUs: len(devices), Queues: run.queues, Way: way, Seconds: took,
			Rate: 2 * float64(m.Bytes()) / took})
	}
	return all, nil
}

// load allocates the share of GPU i and fills its slice of the matrix.
func (o *over) load(i int) error {
	g, n := o.crew.GPUs[i], len(o.crew.GPUs)
	s := &share{blocks: make([]driver.DevicePtr, n), staging: make([]*driver.HostMemory, n),
		streams: make([]*driver.Stream, n), staged: make([]*driver.Event, n)}
	o.shares[i] = s
	module, err := g.Context.Load(cuda.ProbeModule(g.Device))
	if err != nil {
		return err
	}
	if s.kernel, err = newKernelOf(module, best+o.suffix(), bestTile); err != nil {
		return err
	}
	lo, hi := slice(o.NY, i, n)
	first, last := slice(o.NX, i, n)
	if s.in, err = g.Alloc(int64(hi-lo) * int64(o.NX*o.Value)); err != nil {
		return err
	}
	if s.out, err = g.Alloc(int64(last-first) * int64(o.NY*o.Value)); err != nil {
		return err
	}
	host := make([]byte, (hi-lo)*o.NX*o.Value)
	o.fill(host, lo, hi)
	if err := g.Context.CopyToDevice(s.in, host); err != nil {
		return err
	}
	for stage := range n {
		if s.streams[stage], err = g.Stream(); err != nil {
			return err
		}
		if stage == 0 {
			continue
		}
		b := o.blockOf(i, stage, n)
		size := b.width() * b.height() * o.Value
		if s.blocks[stage], err = g.Alloc(int64(size)); err != nil {
			return err
		}
		if !o.crew.Peers {
			if s.staging[stage], err = g.Pinned(size); err != nil {
				return err
			}
			if s.staged[stage], err = g.Event(); err != nil {
				return err
			}
		}
	}
	return nil
}

// fastest returns the shortest time of several runs, in seconds, and checks the transpose.
func (o *over) fastest(ctx context.Context, run func() error) (float64, error) {
	err := o.crew.Each(func(i int) error {
		lo, hi := slice(o.NX, i, len(o.shares))
		return o.shares[i].streams[0].Fill(o.shares[i].out, 0xff, (hi-lo)*o.NY*o.Value)
	})
	best := -1.0
	for try := 0; err == nil && try <= tries; try++ { // the first run warms up
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err = o.crew.Synchronize(); err != nil {
			break
		}
		begin := time.Now()
		err = run()
		if took := time.Since(begin).Seconds(); try > 0 && (best < 0 || took < best) {
			best = took
		}
	}
	if err != nil {
		return 0, err
	}
	return best, o.crew.Each(func(i int) error {
		lo, hi := slice(o.NX, i, len(o.shares))
		host := make([]byte, (hi-lo)*o.NY*o.Value)
		if err := o.crew.GPUs[i].Context.CopyFromDevice(host, o.shares[i].out); err != nil {
			return err
		}
		return o.checkTransposed(host, lo, hi)
	})
}

// blocking does one operation at a time on every GPU.
func (o *over) blocking() error {
	for stage := range o.shares {
		for _, do := range []func(i, stage int, s *driver.Stream) error{o.stage, o.fetch, o.transpose} {
			err := o.crew.Each(func(i int) error {
				if err := do(i, stage, o.shares[i].streams[0]); err != nil {
					return err
				}
				return o.shares[i].streams[0].Synchronize()
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// asynchronous queues all stages of all GPUs, each on a stream of its own, and waits for them.
func (o *over) asynchronous() error {
	queue := func(do func(i, stage int, s *driver.Stream) error) error {
		return o.crew.Each(func(i int) error {
			for stage, s := range o.shares[i].streams {
				if err := do(i, stage, s); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if !o.crew.Peers { // the events of stage must be recorded before fetch waits for them
		if err := queue(o.stage); err != nil {
			return err
		}
	}
	err := queue(func(i, stage int, s *driver.Stream) error {
		if err := o.fetch(i, stage, s); err != nil {
			return err
		}
		return o.transpose(i, stage, s)
	})
	if err != nil {
		return err
	}
	return o.crew.Synchronize()
}

// rowsOf returns the rows of b in the slice of the GPU that holds it.
func (o *over) rowsOf(b block) driver.Rows {
	at := o.shares[b.from].in + driver.DevicePtr(b.columns[0]*o.Value)
	return at.Rows(o.NX * o.Value)
}

// stage copies, where GPUs have no access to each other, the block that another GPU takes from GPU i to host memory.
func (o *over) stage(i, stage int, s *driver.Stream) error {
	if stage == 0 || o.crew.Peers {
		return nil
	}
	n := len(o.shares)
	b := o.blockOf((i-stage+n)%n, stage, n)
	to := o.shares[b.to].staging[stage]
	if err := s.Copy2D(to.Rows(0, b.width()*o.Value), o.rowsOf(b), b.width()*o.Value, b.height()); err != nil {
		return err
	}
	return o.shares[i].staged[stage].Record(s)
}

// fetch copies GPU i's block of a stage into its memory.
func (o *over) fetch(i, stage int, s *driver.Stream) error {
	b := o.blockOf(i, stage, len(o.shares))
	if stage == 0 {
		return nil
	}
	mine := o.shares[i]
	to := mine.blocks[stage].Rows(b.width() * o.Value)
	if o.crew.Peers {
		return s.Copy2D(to, o.rowsOf(b), b.width()*o.Value, b.height())
	}
	if err := s.Wait(o.shares[b.from].staged[stage]); err != nil {
		return err
	}
	return s.CopyToDevice(mine.blocks[stage], mine.staging[stage], 0, b.width()*b.height()*o.Value)
}

// transpose transposes GPU i's block of a stage into its slice of the transpose.
func (o *over) transpose(i, stage int, s *driver.Stream) error {
	b, mine := o.blockOf(i, stage, len(o.shares)), o.shares[i]
	p := part{in: mine.blocks[stage], inPitch: int64(b.width()), nx: int32(b.width()), ny: int32(b.height()),
		out: mine.out + driver.DevicePtr(b.rows[0]*o.Value), outPitch: int64(o.NY)}
	if stage == 0 {
		p.in, p.inPitch = mine.in+driver.DevicePtr(b.columns[0]*o.Value), int64(o.NX)
	}
	return mine.kernel.launch(s, p)
}
