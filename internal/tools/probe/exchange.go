package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

// exchangeRounds is the number of exchanges between two looks at the clock.
const exchangeRounds = 200

// ExchangeReport is the time of an exchange of halos, without sweeps: each of two neighbours sends its rows to the
// other, and none begins the next exchange before it has the other's rows.
type ExchangeReport struct {
	Between string  `json:"between"`
	Bytes   int     `json:"bytes"` // that each sends
	Seconds float64 `json:"seconds"`
}

// exchanges measures exchanges between the GPUs that are neighbours, or through shared memory on a CPU.
func exchanges(ctx context.Context, m *Machine, bytes int, r *Result) (all []ExchangeReport, err error) {
	all = []ExchangeReport{}
	if m.NoGPU != nil {
		took, err := sharedExchange(ctx, bytes)
		if err != nil {
			return all, err
		}
		r.add(took.Seconds(), "s", "sweep.exchange.shared_memory")
		return append(all, ExchangeReport{"ranks, shared memory", bytes, took.Seconds()}), nil
	}
	for i := range len(m.GPUs) - 1 {
		took, err := exchangeGPUs(ctx, m, i, i+1, bytes)
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		if err != nil {
			r.skip("exchange of GPUs %d and %d: %v", i, i+1, err)
			continue
		}
		r.add(took.Seconds(), "s", "sweep.exchange.gpu%d.gpu%d", i, i+1)
		all = append(all, ExchangeReport{fmt.Sprintf("GPUs %d and %d", i, i+1), bytes, took.Seconds()})
	}
	return all, nil
}

// exchangeEnd is one of two neighbours.
type exchangeEnd struct {
	*gpu.GPU
	stream   *driver.Stream
	rows, in driver.DevicePtr
	sent     *driver.Event
}

func newExchangeEnd(v *driver.Device, bytes int) (e *exchangeEnd, err error) {
	e = &exchangeEnd{}
	if e.GPU, err = gpu.Open(v); err != nil {
		return nil, err
	}
	if e.stream, err = e.Stream(); err == nil {
		e.sent, err = e.Event()
	}
	for _, p := range []*driver.DevicePtr{&e.rows, &e.in} {
		if err == nil {
			*p, err = e.Alloc(int64(bytes))
		}
	}
	return e, err
}

// exchangeGPUs returns the time of one exchange between two GPUs.
func exchangeGPUs(ctx context.Context, m *Machine, i, j, bytes int) (best time.Duration, err error) {
	var ends [2]*exchangeEnd
	for k, v := range []int{i, j} {
		if ends[k], err = newExchangeEnd(&m.GPUs[v], bytes); ends[k] != nil {
			e := ends[k]
			defer func() { err = errors.Join(err, e.Context.Use(), e.Close()) }()
		}
		if err != nil {
			return 0, err
		}
	}
	for k, e := range ends {
		peer := ends[1-k]
		if can, err := e.CanAccessPeer(peer.Device); err != nil || !can {
			continue // the driver copies through the host
		}
		err := errors.Join(e.Context.Use(), e.Context.EnablePeer(peer.Context))
		if err != nil && !errors.Is(err, driver.ErrPeerAccessEnabled) &&
			!errors.Is(err, driver.ErrPeerAccessUnsupported) {
			return 0, err
		}
	}
	best = -1
	for range peerTries {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		start := time.Now()
		for range exchangeRounds {
			if err := exchangeOnce(ends, bytes); err != nil {
				return 0, err
			}
		}
		for _, e := range ends {
			if err := errors.Join(e.Context.Use(), e.stream.Synchronize()); err != nil {
				return 0, err
			}
		}
		if took := time.Since(start) / exchangeRounds; best < 0 || took < best {
			best = took
		}
	}
	return best, nil
}

// exchangeOnce queues an exchange.
func exchangeOnce(ends [2]*exchangeEnd, bytes int) error {
	for k, e := range ends {
		peer := ends[1-k]
		if err := errors.Join(e.Context.Use(), e.stream.CopyToPeer(peer.Context, peer.in, e.rows, bytes),
			e.sent.Record(e.stream)); err != nil {
			return err
		}
	}
	for k, e := range ends {
		if err := e.stream.Wait(ends[1-k].sent); err != nil {
			return err
		}
	}
	return nil
}
