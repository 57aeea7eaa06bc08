// Package gpu opens a GPU for a measurement: memory, streams and events that last until Close, and the shortest time of
// several runs. Every part of the probe that uses a GPU stands on it.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/cuda/driver"
)

// GPU is a GPU that is being measured. The goroutine that opened it stays on its thread until Close, and it alone uses
// the GPU.
type GPU struct {
	*driver.Device
	Context *driver.Context
	closers []func() error
	marks   [2]*driver.Event
}

// Open opens v and binds it to the calling goroutine. Errors name the GPU.
func Open(v *driver.Device) (*GPU, error) {
	g := &GPU{Device: v}
	err := g.open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%v: %w", v, err), g.Close())
	}
	return g, nil
}

func (g *GPU) open() (err error) {
	if g.Context, err = g.Retain(driver.ScheduleSpin); err != nil {
		return err
	}
	g.OnClose(g.Context.Close)
	if err := g.Context.Bind(); err != nil {
		return err
	}
	g.OnClose(g.Context.Unbind)
	for i := range g.marks {
		if g.marks[i], err = g.Context.NewEvent(true); err != nil {
			return err
		}
		g.OnClose(g.marks[i].Close)
	}
	return nil
}

// OnClose makes Close call f, before what was opened earlier is closed.
func (g *GPU) OnClose(f func() error) { g.closers = append(g.closers, f) }

// Close frees all that was opened. A second call does nothing.
func (g *GPU) Close() error {
	var errs []error
	if g.Context != nil && len(g.closers) > 1 {
		errs = append(errs, g.Context.Synchronize()) // after an error, work may still use the memory
	}
	for i := len(g.closers) - 1; i >= 0; i-- {
		errs = append(errs, g.closers[i]())
	}
	g.closers = nil
	return errors.Join(errs...)
}

// Closed closes the GPU and returns err, which it names the GPU in, or else the error of closing.
func (g *GPU) Closed(err error) error {
	failed := g.Close()
	if err == nil {
		err = failed
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%v: %w", g.Device, err)
}

// Alloc allocates n bytes of the GPU's memory until Close.
func (g *GPU) Alloc(n int64) (driver.DevicePtr, error) {
	p, err := g.Context.Alloc(n)
	if err == nil {
		g.OnClose(func() error { return g.Context.Free(p) })
	}
	return p, err
}

// Pinned allocates n bytes of page-locked host memory until Close.
func (g *GPU) Pinned(n int) (*driver.HostMemory, error) {
	h, err := g.Context.AllocHost(n)
	if err == nil {
		g.OnClose(h.Free)
	}
	return h, err
}

// Pageable allocates n bytes of host memory without locking its pages, until Close.
func (g *GPU) Pageable(n int) (*driver.HostMemory, error) {
	h, err := g.Context.AllocPageable(n)
	if err == nil {
		g.OnClose(h.Free)
	}
	return h, err
}

// Stream creates a stream until Close.
func (g *GPU) Stream() (*driver.Stream, error) {
	s, err := g.Context.NewStream(0)
	if err == nil {
		g.OnClose(s.Close)
	}
	return s, err
}

// Event creates an event with timing until Close.
func (g *GPU) Event() (*driver.Event, error) {
	e, err := g.Context.NewEvent(true)
	if err == nil {
		g.OnClose(e.Close)
	}
	return e, err
}

// Room returns how many bytes a measurement may allocate at most: a share of what is free.
func (g *GPU) Room(share float64) (int64, error) {
	free, _, err := g.Context.Memory()
	return int64(share * float64(free)), err
}

// Fastest queues work on s tries times, each time after the one before has ended, and returns the shortest time on the
// GPU. One run before them, which warms caches up, does not count.
func (g *GPU) Fastest(ctx context.Context, s *driver.Stream, tries int, queue func() error) (time.Duration, error) {
	best := time.Duration(-1)
	for try := range tries + 1 {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		took, err := g.once(s, queue)
		if err != nil {
			return 0, err
		}
		if try > 0 && (best < 0 || took < best) {
			best = took
		}
	}
	return best, nil
}

func (g *GPU) once(s *driver.Stream, queue func() error) (time.Duration, error) {
	if err := g.marks[0].Record(s); err != nil {
		return 0, err
	}
	if err := queue(); err != nil {
		return 0, err
	}
	if err := g.marks[1].Record(s); err != nil {
		return 0, err
	}
	if err := g.marks[1].Synchronize(); err != nil {
		return 0, err
	}
	return driver.Elapsed(g.marks[0], g.marks[1])
}
