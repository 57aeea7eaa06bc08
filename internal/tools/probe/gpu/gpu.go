// Package gpu opens GPUs for measurements: memory, streams, events and kernels of the probe, which last until the
// measurement ends, and the shortest time of several runs. Every part of the probe that uses a GPU stands on it.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jacobi/cuda"
	"jacobi/cuda/driver"
)

// GPU is a GPU that is being measured. The goroutine that opened it stays on its thread until it is closed. The methods
// that open something return nothing useful after one of them has failed, and Err says why.
type GPU struct {
	*driver.Device
	Context *driver.Context
	Stream  *driver.Stream // for work that needs no other
	module  *driver.Module
	marks   [2]*driver.Event
	closers []func() error
	err     error
}

// With opens v, calls do and closes v. Errors name the GPU.
func With(v *driver.Device, do func(g *GPU) error) error {
	g := openGPU(v)
	err := g.err
	if err == nil {
		err = do(g)
	}
	if err = errors.Join(err, g.close()); err != nil {
		return fmt.Errorf("%v: %w", v, err)
	}
	return nil
}

// openGPU binds v to the calling goroutine.
func openGPU(v *driver.Device) *GPU {
	g := &GPU{Device: v}
	g.Context = open(g, func() (*driver.Context, error) { return v.Retain(driver.ScheduleSpin) },
		(*driver.Context).Close)
	open(g, func() (*driver.Context, error) { return g.Context, g.Context.Bind() }, (*driver.Context).Unbind)
	g.Stream = g.NewStream()
	for i := range g.marks {
		g.marks[i] = g.NewEvent()
	}
	return g
}

// open opens something that is closed with the GPU.
func open[T any](g *GPU, open func() (T, error), closeIt func(T) error) (t T) {
	if g.err != nil {
		return t
	}
	opened, err := open()
	if g.err = err; err != nil {
		return t
	}
	g.closers = append(g.closers, func() error { return closeIt(opened) })
	return opened
}

// close frees all that was opened, the last first.
func (g *GPU) close() error {
	err := g.idle() // after an error, work may still use the memory
	for _, closeIt := range slices.Backward(g.closers) {
		err = errors.Join(err, closeIt())
	}
	return err
}

// idle waits until g, if it was opened, has done its work.
func (g *GPU) idle() error {
	if len(g.closers) < 2 {
		return nil
	}
	return g.Context.Synchronize()
}

// Err returns why something could not be opened.
func (g *GPU) Err() error { return g.err }

// Alloc allocates n bytes of the GPU's memory.
func (g *GPU) Alloc(n int64) driver.DevicePtr {
	return open(g, func() (driver.DevicePtr, error) { return g.Context.Alloc(n) }, g.Context.Free)
}

// Pinned allocates n bytes of page-locked host memory. Err does not tell of a failure: there may be little of it.
func (g *GPU) Pinned(n int) (*driver.HostMemory, error) {
	before := g.err
	h := open(g, func() (*driver.HostMemory, error) { return g.Context.AllocHost(n) }, (*driver.HostMemory).Free)
	err := g.err
	g.err = before
	return h, err
}

// Pageable allocates n bytes of host memory without locking its pages.
func (g *GPU) Pageable(n int) (*driver.HostMemory, error) {
	return open(g, func() (*driver.HostMemory, error) { return g.Context.AllocPageable(n) },
		(*driver.HostMemory).Free), g.err
}

// NewStream creates a stream.
func (g *GPU) NewStream() *driver.Stream {
	return open(g, func() (*driver.Stream, error) { return g.Context.NewStream(0) }, (*driver.Stream).Close)
}

// NewEvent creates an event with timing.
func (g *GPU) NewEvent() *driver.Event {
	return open(g, func() (*driver.Event, error) { return g.Context.NewEvent(true) }, (*driver.Event).Close)
}

// Kernel is a kernel of the probe with its arguments.
type Kernel struct {
	*driver.Function
	args *driver.Args
}

// Kernel returns a kernel. The arguments are pointers to variables, whose values count when the kernel is launched.
func (g *GPU) Kernel(name string, args ...any) (k Kernel) {
	if g.module == nil && g.err == nil {
		g.module, g.err = g.Context.Load(cuda.ProbeModule(g.Device))
	}
	if g.err == nil {
		k.Function, g.err = g.module.Function(name)
	}
	if g.err == nil {
		k.args, g.err = k.Args(args...)
	}
	return k
}

// QueueOne launches a single thread.
func (k Kernel) QueueOne(s *driver.Stream) error {
	return k.Launch(s, driver.Dim{X: 1}, driver.Dim{X: 1}, 0, k.args)
}

// Room returns a share of the GPU's free memory, in bytes.
func (g *GPU) Room(share float64) (int64, error) {
	free, _, err := g.Context.Memory()
	return int64(share * float64(free)), err
}

// Timed returns a function that queues work on s, waits for it and returns how long the GPU took.
func (g *GPU) Timed(s *driver.Stream, queue func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if err := Do(func() error { return g.marks[0].Record(s) }, queue,
			func() error { return g.marks[1].Record(s) }, g.marks[1].Synchronize); err != nil {
			return 0, err
		}
		return driver.Elapsed(g.marks[0], g.marks[1])
	}
}

// Do takes steps, up to the first that fails.
func Do(steps ...func() error) (err error) {
	for i := 0; err == nil && i < len(steps); i++ {
		err = steps[i]()
	}
	return err
}

// Times returns a function that does work n times.
func Times(n int, work func() error) func() error {
	return func() (err error) {
		for i := 0; err == nil && i < n; i++ {
			err = work()
		}
		return err
	}
}

// Wall returns a function that does work and returns how long that took.
func Wall(work func() error) func() (time.Duration, error) {
	return func() (took time.Duration, err error) {
		begin := time.Now()
		err = work()
		return time.Since(begin), err
	}
}

// Fastest calls once tries times and returns the shortest time. One call before them, which touches memory for the
// first time, does not count. The error may be the cause of the end of ctx.
func Fastest(ctx context.Context, tries int, once func() (time.Duration, error)) (best time.Duration, err error) {
	for try := range tries + 1 {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		took, err := once()
		if err != nil {
			return 0, err
		}
		if try <= 1 || took < best {
			best = took
		}
	}
	return best, nil
}

// Group is several GPUs, each with a goroutine of its own, which work at the same time.
type Group struct {
	GPUs   []*GPU
	Access [][]bool // GPU i maps the memory of GPU j
	jobs   []chan func()
}

// WithGroup opens the devices, and access between them where they have it, calls do and closes them.
func WithGroup(devices []driver.Device, do func(c *Group) error) error {
	c := &Group{GPUs: make([]*GPU, len(devices)), Access: make([][]bool, len(devices))}
	for range devices {
		jobs := make(chan func())
		c.jobs = append(c.jobs, jobs)
		go func() {
			for job := range jobs {
				job()
			}
		}()
	}
	err := c.Each(func(i int) error {
		c.GPUs[i] = openGPU(&devices[i])
		return c.GPUs[i].err
	})
	if err == nil {
		err = c.Each(c.connect)
	}
	if err == nil {
		err = do(c)
	}
	idle := c.Each(func(i int) error { return c.GPUs[i].idle() }) // no GPU may use the memory of one that is closed
	err = errors.Join(err, idle, c.Each(func(i int) error { return c.GPUs[i].close() }))
	for _, jobs := range c.jobs {
		close(jobs)
	}
	return err
}

// connect opens the access of GPU i to all others. A container or a virtual machine may prevent it.
func (c *Group) connect(i int) error {
	g := c.GPUs[i]
	c.Access[i] = make([]bool, len(c.GPUs))
	for j, peer := range c.GPUs {
		can, err := i != j, error(nil)
		if can {
			can, err = g.CanAccessPeer(peer.Device)
		}
		if can && err == nil {
			err = g.Context.EnablePeer(peer.Context)
		}
		unsupported := errors.Is(err, driver.ErrPeerAccessUnsupported)
		if err != nil && !unsupported && !errors.Is(err, driver.ErrPeerAccessEnabled) {
			return fmt.Errorf("access from %v to %v: %w", g.Device, peer.Device, err)
		}
		c.Access[i][j] = can && !unsupported
	}
	return nil
}

// Each calls do for every GPU at the same time, on the GPU's goroutine, and waits.
func (c *Group) Each(do func(i int) error) error {
	errs := make([]error, len(c.jobs))
	var wg sync.WaitGroup
	for i, jobs := range c.jobs {
		wg.Add(1)
		jobs <- func() {
			defer wg.Done()
			errs[i] = do(i)
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// On calls do on the goroutine of GPU i. It may use the contexts of other GPUs there, and leaves that of its own.
func (c *Group) On(i int, do func() error) error {
	return c.Each(func(k int) (err error) {
		if k == i {
			err = errors.Join(do(), c.GPUs[i].Context.Use())
		}
		return err
	})
}
