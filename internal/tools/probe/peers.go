package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"jacobi/cuda/driver"
	"jacobi/halo"
	"jacobi/internal/base/shm"
	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

const (
	peerBytes  = 256 << 20 // of one copy, less where memory is short
	peerCopies = 8         // between two looks at the clock
	peerTries  = 3
	wordBytes  = 256     // of the ping-pong: the word that bounces, and
	doneAt     = 128     // the rounds done, in another cache line
	rounds     = 2000    // of the ping-pong
	patience   = 1 << 21 // reads of a word before a GPU gives the ping-pong up, about a second
)

// pair has what the link from one GPU to another does. Rates are in bytes a second.
type pair struct {
	from, to   int     // CUDA's indices
	access     bool    // from maps the memory of to
	rate, both float64 // of copies that from sends to to, and of copies in both directions at once, both counted
	latency    float64 // of a small write there or back; 0 without access both ways, or if writes do not arrive
	wrong      bool    // a copy brought other bytes
}

// peers measures the links between the GPUs of this node, and the memory that its ranks share.
func peers(ctx context.Context, m *Machine) (r Result, err error) {
	small, err := sharedExchange(ctx, 8)
	var large time.Duration
	if err == nil {
		large, err = sharedExchange(ctx, sharedBytes)
	}
	if err != nil {
		return r, fmt.Errorf("shared memory: %w", err)
	}
	r.add(small.Seconds(), "s", "peers.shared_memory.latency")
	r.add(sharedBytes/large.Seconds(), "B/s", "peers.shared_memory.rate")
	r.say("shared memory between ranks: %s for 8 bytes, %s each way for %s", seconds(small.Seconds()),
		rate(sharedBytes/large.Seconds()), size(sharedBytes))
	switch {
	case m.NoGPU != nil:
		r.skip("links between GPUs: %v", m.NoGPU)
	case len(m.GPUs) < 2:
		r.skip("links between GPUs: there is one GPU")
	default:
		var pairs []pair
		err = gpu.WithGroup(m.GPUs, func(c *gpu.Group) (err error) {
			pairs, err = pairsOf(ctx, c, &r)
			return err
		})
		r.judgePeers(m, pairs)
	}
	return r, err
}

// judgePeers adds tables, figures, pairs without access, and slow pairs.
func (r *Result) judgePeers(m *Machine, pairs []pair) {
	var rates, both, waits []float64
	for _, p := range pairs {
		name := fmt.Sprintf("peers.gpu%d.gpu%d", p.from, p.to)
		r.add(p.rate, "B/s", "%s.rate", name)
		r.add(p.both, "B/s", "%s.rate_both_ways", name)
		rates, both = append(rates, p.rate), append(both, p.both)
		if p.latency > 0 {
			r.add(p.latency, "s", "%s.latency", name)
			waits = append(waits, p.latency)
		}
		switch {
		case p.wrong:
			r.find("GPU %d: copies from GPU %d bring other bytes.", p.to, p.from)
		case !p.access:
			r.find("GPU %d has no access to the memory of GPU %d; copies go through the host.", p.from, p.to)
		}
	}
	for _, p := range pairs {
		if p.rate < fair*median(rates) {
			r.find("GPU %d sends %s to GPU %d; the median of the pairs is %s.", p.from, rate(p.rate), p.to,
				rate(median(rates)))
		}
		if p.from < p.to && p.both < fair*median(both) {
			r.find("GPUs %d and %d exchange %s; the median of the pairs is %s.", p.from, p.to, rate(p.both),
				rate(median(both)))
		}
		if p.latency > 0 && p.latency > 1.5*median(waits) {
			r.find("GPUs %d and %d: a write takes %s; the median of the pairs is %s.", p.from, p.to,
				seconds(p.latency), seconds(median(waits)))
		}
	}
	for _, of := range []struct {
		title, unit string
		cell        func(pair) any
	}{
		{"access: a row maps the memory of a column", "", func(p pair) any { return p.access }},
		{"copies: a row sends and a column receives", "B/s", func(p pair) any { return p.rate }},
		{"copies both ways at once", "B/s", func(p pair) any { return p.both }},
		{"latency of a write", "s", func(p pair) any { return p.latency }},
	} {
		t := newTable(of.title, "")
		for i := range m.GPUs {
			cells := make([]any, 1+len(m.GPUs))
			cells[0] = fmt.Sprintf("GPU %d", m.GPUs[i].Index)
			t.Columns = append(t.Columns, Column{fmt.Sprint(cells[0]), of.unit})
			for j := range m.GPUs {
				for _, p := range pairs {
					if p.from == m.GPUs[i].Index && p.to == m.GPUs[j].Index {
						cells[1+j] = of.cell(p)
					}
				}
			}
			t.row(cells...)
		}
		r.show(t)
	}
}

// peerEnd is what one GPU holds for measurements from the goroutine of the first GPU.
type peerEnd struct {
	*gpu.GPU
	from, to           driver.DevicePtr
	sent               *driver.Event
	mine, done, theirs driver.DevicePtr // of the ping-pong
	first              uint32           // 1 for the GPU that begins it
	pingpong           gpu.Kernel
}

// newEnds allocates memory on each GPU to send a number of bytes from and to.
func newEnds(c *gpu.Group, bytes int64) ([]*peerEnd, error) {
	ends := make([]*peerEnd, len(c.GPUs))
	return ends, c.Each(func(i int) error {
		g := c.GPUs[i]
		ends[i] = &peerEnd{GPU: g, from: g.Alloc(bytes), to: g.Alloc(bytes), sent: g.NewEvent()}
		return g.Err()
	})
}

// do calls functions one after the other in the context of the GPU.
func (e *peerEnd) do(all ...func() error) error {
	return gpu.Do(e.Context.Use, func() error { return gpu.Do(all...) })
}

// send returns a function that queues a copy to another GPU.
func (e *peerEnd) send(to *peerEnd, bytes int64) func() error {
	return func() error { return e.Stream.CopyToPeer(to.Context, to.to, e.from, int(bytes)) }
}

// pairsOf measures every pair, from the goroutine of the first GPU.
func pairsOf(ctx context.Context, c *gpu.Group, r *Result) (pairs []pair, err error) {
	bytes, rooms := int64(peerBytes), make([]int64, len(c.GPUs))
	err = c.Each(func(i int) (err error) {
		rooms[i], err = c.GPUs[i].Room(shareOfGPU)
		return err
	})
	if bytes = min(bytes, slices.Min(rooms)&^0xfff); err == nil && bytes < smallestCopy {
		err = fmt.Errorf("no memory is left on a GPU for a copy of %s", size(smallestCopy))
	}
	if err != nil {
		return nil, err
	}
	ends, err := newEnds(c, bytes)
	if err != nil {
		return nil, err
	}
	err = c.Each(func(i int) error {
		e := ends[i]
		e.mine = e.Alloc(wordBytes)
		e.done = e.mine + doneAt
		n, patient := uint32(rounds), uint32(patience)
		e.pingpong = e.Kernel("probe_pingpong", &e.mine, &e.theirs, &e.done, &n, &e.first, &patient)
		return e.Err()
	})
	if err != nil {
		return nil, err
	}
	err = c.On(0, func() error {
		for i, from := range ends {
			for j, to := range ends {
				if i == j {
					continue
				}
				p := pair{from: from.Index, to: to.Index, access: c.Access[i][j]}
				b := peerBench{from, to, bytes}
				err := b.copies(ctx, &p, byte(1+(i*len(ends)+j)%250))
				if err == nil && p.access && c.Access[j][i] {
					if p.latency, err = b.bounce(); p.latency == 0 {
						r.skip("latency of GPUs %d and %d: a write did not arrive within %d reads", p.from, p.to,
							patience)
					}
				}
				if err != nil {
					return fmt.Errorf("GPUs %d and %d: %w", p.from, p.to, err)
				}
				pairs = append(pairs, p)
			}
		}
		return nil
	})
	return pairs, err
}

// peerBench is the link from one GPU to another.
type peerBench struct {
	from, to *peerEnd
	bytes    int64
}

// copies measures copies, which are to bring bytes that only this pair sends.
func (b peerBench) copies(ctx context.Context, p *pair, sent byte) error {
	from, to := b.from, b.to
	there, back := gpu.Times(peerCopies, from.send(to, b.bytes)), gpu.Times(peerCopies, to.send(from, b.bytes))
	if err := from.do(); err != nil {
		return err
	}
	took, err := gpu.Fastest(ctx, peerTries, from.Timed(from.Stream, there))
	if err != nil {
		return err
	}
	p.rate = float64(peerCopies*b.bytes) / took.Seconds()
	err = from.do(func() error { return from.Stream.Fill(from.from, sent, int(b.bytes)) }, there,
		from.Stream.Synchronize)
	got := make([]byte, min(b.bytes, 1<<20))
	for _, at := range []int64{0, b.bytes - int64(len(got))} {
		part := to.to + driver.DevicePtr(at)
		err = errors.Join(err, to.do(func() error { return to.Context.CopyFromDevice(got, part) }))
		p.wrong = p.wrong || bytes.Count(got, []byte{sent}) != len(got)
	}
	if err != nil {
		return err
	}
	took, err = gpu.Fastest(ctx, peerTries, gpu.Wall(func() error {
		return errors.Join(from.do(there), to.do(back, to.Stream.Synchronize), from.do(from.Stream.Synchronize))
	}))
	p.both = 2 * peerCopies * float64(b.bytes) / took.Seconds()
	return err
}

// bounce returns the latency of a write between the GPUs, in seconds; 0 if writes do not arrive.
func (b peerBench) bounce() (best float64, err error) {
	ends := []*peerEnd{b.to, b.from}
	for range peerTries {
		for i, e := range ends {
			e.theirs, e.first = ends[1-i].mine, uint32(i)
			err = errors.Join(err, e.do(func() error { return e.Stream.Fill(e.mine, 0, wordBytes) },
				e.Stream.Synchronize))
		}
		start := time.Now()
		for _, e := range ends {
			err = errors.Join(err, e.do(func() error { return e.pingpong.QueueOne(e.Stream) }))
		}
		err = errors.Join(err, b.from.do(b.from.Stream.Synchronize), b.to.do(b.to.Stream.Synchronize))
		took := time.Since(start).Seconds() / (2 * rounds)
		for _, e := range ends {
			done := make([]byte, 4)
			err = errors.Join(err, e.do(func() error { return e.Context.CopyFromDevice(done, e.done) }))
			if err != nil || binary.LittleEndian.Uint32(done) != rounds {
				return 0, err
			}
		}
		if best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}

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
	err = gpu.WithGroup(pair, func(c *gpu.Group) error {
		ends, err := newEnds(c, int64(bytes))
		if err != nil {
			return err
		}
		a, b := ends[0], ends[1]
		sendA, sendB := a.send(b, int64(bytes)), b.send(a, int64(bytes))
		exchange := func() error {
			if err := a.do(sendA, func() error { return a.sent.Record(a.Stream) }); err != nil {
				return err
			}
			if err := b.do(sendB, func() error { return b.sent.Record(b.Stream) }); err != nil {
				return err
			}
			return errors.Join(a.Stream.Wait(b.sent), b.Stream.Wait(a.sent))
		}
		return c.On(0, func() (err error) {
			took, err = gpu.Fastest(ctx, peerTries, gpu.Wall(func() error {
				return gpu.Do(gpu.Times(exchangeRounds, exchange),
					func() error { return errors.Join(a.do(a.Stream.Synchronize), b.do(b.Stream.Synchronize)) })
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
