package gpu

import (
	"errors"
	"fmt"
	"sync"

	"jacobi/cuda/driver"
)

// Crew is several GPUs, each with a goroutine of its own, which work at the same time.
type Crew struct {
	GPUs  []*GPU
	Peers bool // every GPU can access the memory of every other one
	jobs  []chan func()
}

// OpenCrew opens the devices, and access between them where all of them have it.
func OpenCrew(devices []driver.Device) (*Crew, error) {
	c := &Crew{GPUs: make([]*GPU, len(devices))}
	for range devices {
		jobs := make(chan func())
		c.jobs = append(c.jobs, jobs)
		go func() {
			for job := range jobs {
				job()
			}
		}()
	}
	err := c.Each(func(i int) (err error) {
		c.GPUs[i], err = Open(&devices[i])
		return err
	})
	if err == nil {
		err = c.connect()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// connect opens the access to peers.
func (c *Crew) connect() error {
	for i, g := range c.GPUs {
		for j, peer := range c.GPUs {
			if i == j {
				continue
			}
			if can, err := g.CanAccessPeer(peer.Device); err != nil || !can {
				return err
			}
		}
	}
	c.Peers = true
	return c.Each(func(i int) error {
		for j, peer := range c.GPUs {
			if i == j {
				continue
			}
			err := c.GPUs[i].Context.EnablePeer(peer.Context)
			if err != nil && !errors.Is(err, driver.ErrPeerAccessEnabled) {
				return fmt.Errorf("access from %v to %v: %w", c.GPUs[i].Device, peer.Device, err)
			}
		}
		return nil
	})
}

// Each runs do for every GPU at the same time, on the GPU's goroutine, and waits.
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

// Synchronize waits until all GPUs have done their work.
func (c *Crew) Synchronize() error {
	return c.Each(func(i int) error { return c.GPUs[i].Context.Synchronize() })
}

// Close closes the GPUs once all of them have done their work.
func (c *Crew) Close() error {
	idle := c.Each(func(i int) error {
		if c.GPUs[i] == nil || len(c.GPUs[i].closers) == 0 {
			return nil
		}
		return c.GPUs[i].Context.Synchronize()
	})
	err := c.Each(func(i int) error {
		if c.GPUs[i] == nil {
			return nil
		}
		return c.GPUs[i].Close()
	})
	for _, jobs := range c.jobs {
		close(jobs)
	}
	c.jobs = nil
	return errors.Join(idle, err)
}

// Counts returns 1, 2, 4... below n, and n: the numbers of GPUs on which work is measured.
func Counts(n int) (list []int) {
	for k := 1; k < n; k *= 2 {
		list = append(list, k)
	}
	return append(list, n)
}
