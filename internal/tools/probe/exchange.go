package probe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"jacobi/cuda/driver"
	"jacobi/halo"
	"jacobi/internal/base/shm"
	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

// exchangeRounds is the number of exchanges between two looks at the clock.
const exchangeRounds = 200

// exchanges measures exchanges of halos, without sweeps, between the GPUs that are neighbours, or through shared memory
// on a CPU: each of two neighbours sends its rows to the other, and none begins the next exchange before it has the
// other's rows.
func (r *Result) exchanges(ctx context.Context, m *Machine, bytes int) error {
	add := func(name, between string, took time.Duration) {
		r.add(took.Seconds(), "s", "sweep.exchange.%s", name)
		r.say("halos of %s between %s: %s", size(int64(bytes)), between, seconds(took.Seconds()))
	}
	if m.NoGPU != nil {
		took, err := sharedExchange(ctx, bytes)
		if err == nil {
			add("shared_memory", "ranks, shared memory", took)
		}
		return err
	}
	for i := range len(m.GPUs) - 1 {
		took, err := exchangeGPUs(ctx, m.GPUs[i:i+2], bytes)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.skip("exchange of GPUs %d and %d: %v", i, i+1, err)
		default:
			add(fmt.Sprintf("gpu%d.gpu%d", i, i+1), fmt.Sprintf("GPUs %d and %d", i, i+1), took)
		}
	}
	return nil
}

// exchangeGPUs returns the time of one exchange between two GPUs, queued by one thread.
func exchangeGPUs(ctx context.Context, pair []driver.Device, bytes int) (took time.Duration, err error) {
	err = gpu.WithCrew(pair, func(c *gpu.Crew) error {
		var rows, in [2]driver.DevicePtr
		var sent [2]*driver.Event
		err := c.Each(func(i int) error {
			g := c.GPUs[i]
			rows[i], in[i], sent[i] = g.Alloc(int64(bytes)), g.Alloc(int64(bytes)), g.NewEvent()
			return g.Err()
		})
		if err != nil {
			return err
		}
		exchange := func() error {
			for i, g := range c.GPUs {
				peer := c.GPUs[1-i].Context
				if err := errors.Join(g.Context.Use(), g.Stream.CopyToPeer(peer, in[1-i], rows[i], bytes),
					sent[i].Record(g.Stream)); err != nil {
					return err
				}
			}
			return errors.Join(c.GPUs[0].Stream.Wait(sent[1]), c.GPUs[1].Stream.Wait(sent[0]))
		}
		return c.On(0, func() (err error) {
			took, err = gpu.Fastest(ctx, peerTries, gpu.Wall(func() error {
				for range exchangeRounds {
					if err := exchange(); err != nil {
						return err
					}
				}
				return errors.Join(c.GPUs[0].Context.Use(), c.GPUs[0].Stream.Synchronize(), c.GPUs[1].Context.Use(),
					c.GPUs[1].Stream.Synchronize())
			}))
			return err
		})
	})
	return took / exchangeRounds, err
}

const (
	sharedBytes     = 1 << 20
	sharedExchanges = 300
	sharedTries     = 5
	sharedTimeout   = 10 * time.Second
)

// sharedExchange returns the shortest time of an exchange through shared memory, over the link that a run uses, between
// two threads of this process. Ranks are processes of their own, but to the memory that is the same.
func sharedExchange(ctx context.Context, bytes int) (time.Duration, error) {
	end := halo.End{Run: halo.RunIDOf("probe"), Rank: 0, Neighbour: 1, Side: solver.Bottom, NX: bytes / 8,
		DType: solver.Float64, Send: solver.Stripe{Lo: 8, Hi: 9}, Recv: solver.Stripe{Lo: 9, Hi: 10}}
	o := halo.SharedOptions{Timeout: sharedTimeout, Spin: shm.SpinTime(1)}
	a, handle, err := halo.CreateShared(end, o)
	if err != nil {
		return 0, err
	}
	b, err := halo.OpenShared(end.Facing(), handle, o)
	if err != nil {
		return 0, errors.Join(err, a.Close())
	}
	next := solver.ExchangeNumber(1)
	took, err := gpu.Fastest(ctx, sharedTries, gpu.Wall(func() error {
		first := next
		next += sharedExchanges
		var errs [2]error
		var both sync.WaitGroup
		for i, l := range []halo.Link{a, b} {
			both.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				rows := make([]byte, bytes)
				for n := first; n < first+sharedExchanges && errs[i] == nil; n++ {
					if errs[i] = l.Send(ctx, n, rows); errs[i] == nil {
						errs[i] = l.Recv(ctx, n, rows)
					}
				}
			})
		}
		both.Wait()
		return errors.Join(errs[:]...)
	}))
	return took / sharedExchanges, errors.Join(err, a.Close(), b.Close())
}
