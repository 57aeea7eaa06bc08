package gpu

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"jacobi/cuda/driver"
)

// Crew is several GPUs, each with a goroutine of its own, which work at the same time.
type Crew struct {
	GPUs   []*GPU
	Access [][]bool // GPU i maps the memory of GPU j
	jobs   []chan func()
}

// WithCrew opens the devices, and access between them where they have it, calls do and closes them.
func WithCrew(devices []driver.Device, do func(c *Crew) error) error {
	c := &Crew{GPUs: make([]*GPU, len(devices)), Access: make([][]bool, len(devices))}
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
	idle := c.Each(func(i int) error {
		if len(c.GPUs[i].closers) < 2 {
			return nil
		}
		return c.GPUs[i].Context.Synchronize() // no GPU may use the memory of one that is closed
	})
	err = errors.Join(err, idle, c.Each(func(i int) error { return c.GPUs[i].close() }))
	for _, jobs := range c.jobs {
		close(jobs)
	}
	return err
}

// connect opens the access of GPU i to all others. A container or a virtual machine may prevent it.
func (c *Crew) connect(i int) error {
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
		switch {
		case errors.Is(err, driver.ErrPeerAccessUnsupported):
			can = false
		case err != nil && !errors.Is(err, driver.ErrPeerAccessEnabled):
			return fmt.Errorf("access from %v to %v: %w", g.Device, peer.Device, err)
		}
		c.Access[i][j] = can
	}
	return nil
}

// Peers reports whether every GPU has access to every other one.
func (c *Crew) Peers() bool {
	for i := range c.Access {
		for j, can := range c.Access[i] {
			if i != j && !can {
				return false
			}
		}
	}
	return true
}

// Each calls do for every GPU at the same time, on the GPU's goroutine, and waits.
func (c *Crew) Each(do func(i int) error) error {
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
func (c *Crew) On(i int, do func() error) error {
	return c.Each(func(k int) error {
		if k != i {
			return nil
		}
		return errors.Join(do(), c.GPUs[i].Context.Use())
	})
}

// Synchronize waits until all GPUs have done their work.
func (c *Crew) Synchronize() error {
	return c.Each(func(i int) error { return c.GPUs[i].Context.Synchronize() })
}

// Timed returns a function that does work once all GPUs are idle, and returns how long that took.
func (c *Crew) Timed(work func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if err := c.Synchronize(); err != nil {
			return 0, err
		}
		return Wall(work)()
	}
}

// Counts returns 1, 2, 4... below n, and n: the numbers of GPUs on which work is measured.
func Counts(n int) (list []int) {
	for k := 1; k < n; k *= 2 {
		list = append(list, k)
	}
	return append(list, n)
}
