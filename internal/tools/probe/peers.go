package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
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

// Pair has what the link from one GPU to another does. Rates are in bytes a second.
type Pair struct {
	From    int      `json:"from"` // CUDA's indices
	To      int      `json:"to"`
	Access  bool     `json:"access"` // From maps the memory of To
	Rate    float64  `json:"rate"`   // of copies that From sends to To
	Both    float64  `json:"rate_both_ways"`
	Latency *float64 `json:"write_latency_seconds"` // of a small write there or back; null without access both ways
	Wrong   bool     `json:"wrong,omitempty"`       // a copy brought other bytes
}

// peersReport is the data of the part peers.
type peersReport struct {
	Shared *sharedReport `json:"shared_memory"` // between ranks of this node
	GPUs   []int         `json:"gpus"`
	Bytes  int64         `json:"copy_bytes"`
	Pairs  []Pair        `json:"pairs"`
}

// peers measures the links between the GPUs of this node, and the memory that its ranks share.
func peers(ctx context.Context, m *Machine) (r Result, err error) {
	d := peersReport{GPUs: []int{}, Pairs: []Pair{}}
	if d.Shared, err = sharedMemory(ctx); err != nil {
		return r, fmt.Errorf("shared memory: %w", err)
	}
	r.add(d.Shared.Latency, "s", "peers.shared_memory.latency")
	r.add(d.Shared.Rate, "B/s", "peers.shared_memory.rate")
	switch {
	case m.NoGPU != nil:
		r.skip("links between GPUs: %v", m.NoGPU)
	case len(m.GPUs) < 2:
		r.skip("links between GPUs: there is one GPU")
	default:
		err = d.measure(ctx, m, &r)
	}
	d.judge(&r)
	r.Data, r.Text = d, d.text()
	return r, err
}

// peerBench has all GPUs of a node open at once.
type peerBench struct {
	all   []*gpu.GPU
	ends  []peerEnd
	bytes int64
}

// peerEnd is what one GPU holds for the measurement.
type peerEnd struct {
	*gpu.GPU
	stream   *driver.Stream
	from, to driver.DevicePtr
	words    driver.DevicePtr // of the ping-pong: mine, done
	pingpong *driver.Function
}

// measure measures every pair.
func (d *peersReport) measure(ctx context.Context, m *Machine, r *Result) (err error) {
	b := &peerBench{bytes: peerBytes}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(m); err != nil {
		return err
	}
	d.Bytes = b.bytes
	for _, e := range b.ends {
		d.GPUs = append(d.GPUs, e.Index)
	}
	access, err := b.enable()
	if err != nil {
		return err
	}
	for i := range b.ends {
		for j := range b.ends {
			if i == j {
				continue
			}
			p, err := b.pair(ctx, i, j, access)
			if err != nil {
				return fmt.Errorf("GPUs %d and %d: %w", b.ends[i].Index, b.ends[j].Index, err)
			}
			d.Pairs = append(d.Pairs, p)
			if p.Access && access[j][i] && p.Latency == nil {
				r.skip("latency of GPUs %d and %d: a write did not arrive within %d reads", p.From, p.To, patience)
			}
		}
	}
	return nil
}

// enable enables access between all GPUs and returns which of them have it. It comes before all copies, since a pair
// with access one way only copies more slowly.
func (b *peerBench) enable() ([][]bool, error) {
	access := make([][]bool, len(b.ends))
	for i, from := range b.ends {
		access[i] = make([]bool, len(b.ends))
		for j, to := range b.ends {
			if i == j {
				continue
			}
			can, err := from.CanAccessPeer(to.Device)
			if err == nil && can {
				err = errors.Join(from.Context.Use(), from.Context.EnablePeer(to.Context))
			}
			switch {
			case errors.Is(err, driver.ErrPeerAccessUnsupported): // a container or a virtual machine may prevent it
			case err != nil && !errors.Is(err, driver.ErrPeerAccessEnabled):
				return nil, fmt.Errorf("access of GPU %d to GPU %d: %w", from.Index, to.Index, err)
			default:
				access[i][j] = can
			}
		}
	}
	return access, nil
}

// open opens all GPUs on this goroutine's thread.
func (b *peerBench) open(m *Machine) error {
	for i := range m.GPUs {
		g, err := gpu.Open(&m.GPUs[i])
		if err != nil {
			return err
		}
		b.all = append(b.all, g)
		room, err := g.Room(shareOfGPU)
		if err != nil {
			return err
		}
		b.bytes = min(b.bytes, room&^0xfff)
	}
	if b.bytes < smallestCopy {
		return fmt.Errorf("no memory is left on a GPU for a copy of %s", size(smallestCopy))
	}
	for _, g := range b.all {
		e, err := newPeerEnd(g, b.bytes)
		if err != nil {
			return fmt.Errorf("%v: %w", g.Device, err)
		}
		b.ends = append(b.ends, e)
	}
	return nil
}

func newPeerEnd(g *gpu.GPU, bytes int64) (e peerEnd, err error) {
	e.GPU = g
	if err := g.Context.Use(); err != nil {
		return e, err
	}
	if e.stream, err = g.Stream(); err != nil {
		return e, err
	}
	if e.words, err = g.Alloc(wordBytes); err != nil {
		return e, err
	}
	for _, p := range []*driver.DevicePtr{&e.from, &e.to} {
		if *p, err = g.Alloc(bytes); err != nil {
			return e, err
		}
	}
	module, err := g.Context.Load(cuda.ProbeModule(g.Device))
	if err != nil {
		return e, err
	}
	e.pingpong, err = module.Function("probe_pingpong")
	return e, err
}

// close closes the GPUs, the last one first.
func (b *peerBench) close() error {
	var errs []error
	for i := len(b.all) - 1; i >= 0; i-- {
		errs = append(errs, b.all[i].Context.Use(), b.all[i].Close())
	}
	return errors.Join(errs...)
}

// pair measures the link from GPU i to GPU j.
func (b *peerBench) pair(ctx context.Context, i, j int, access [][]bool) (p Pair, err error) {
	from, to := b.ends[i], b.ends[j]
	p = Pair{From: from.Index, To: to.Index, Access: access[i][j]}
	if err := from.Context.Use(); err != nil {
		return p, err
	}
	took, err := from.Fastest(ctx, from.stream, peerTries, func() error { return b.send(from, to) })
	if err != nil {
		return p, err
	}
	p.Rate = float64(peerCopies*b.bytes) / took.Seconds()
	if p.Wrong, err = b.wrong(i, j); err != nil {
		return p, err
	}
	if p.Both, err = b.bothWays(ctx, from, to); err != nil || !p.Access || !access[j][i] {
		return p, err
	}
	p.Latency, err = b.bounce(from, to)
	return p, err
}

// send queues copies from one GPU to another.
func (b *peerBench) send(from, to peerEnd) error {
	for range peerCopies {
		if err := from.stream.CopyToPeer(to.Context, to.to, from.from, int(b.bytes)); err != nil {
			return err
		}
	}
	return nil
}

// wrong sends bytes that only this pair has, and reports whether others arrive.
func (b *peerBench) wrong(i, j int) (bool, error) {
	from, to := b.ends[i], b.ends[j]
	sent := byte(1 + (i*len(b.ends)+j)%250)
	if err := errors.Join(from.stream.Fill(from.from, sent, int(b.bytes)), b.send(from, to),
		from.stream.Synchronize(), to.Context.Use()); err != nil {
		return false, err
	}
	got := make([]byte, min(b.bytes, 1<<20))
	for _, at := range []int64{0, b.bytes - int64(len(got))} {
		if err := to.Context.CopyFromDevice(got, to.to+driver.DevicePtr(at)); err != nil {
			return false, err
		}
		for _, v := range got {
			if v != sent {
				return true, nil
			}
		}
	}
	return false, from.Context.Use()
}

// bothWays returns the rate of copies in both directions at once, both counted.
func (b *peerBench) bothWays(ctx context.Context, from, to peerEnd) (best float64, err error) {
	for range peerTries {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		start := time.Now()
		if err := errors.Join(from.Context.Use(), b.send(from, to), to.Context.Use(), b.send(to, from),
			to.stream.Synchronize(), from.Context.Use(), from.stream.Synchronize()); err != nil {
			return 0, err
		}
		best = max(best, 2*peerCopies*float64(b.bytes)/time.Since(start).Seconds())
	}
	return best, nil
}

// bounce returns the latency of a write between two GPUs, in seconds; nil if writes do not arrive.
func (b *peerBench) bounce(from, to peerEnd) (*float64, error) {
	best := -1.0
	for range peerTries {
		for _, e := range []peerEnd{from, to} {
			if err := errors.Join(e.Context.Use(), e.stream.Fill(e.words, 0, wordBytes),
				e.stream.Synchronize()); err != nil {
				return nil, err
			}
		}
		start := time.Now()
		if err := errors.Join(to.launch(from, 0), from.launch(to, 1)); err != nil {
			return nil, err
		}
		if err := errors.Join(from.stream.Synchronize(), to.Context.Use(), to.stream.Synchronize()); err != nil {
			return nil, err
		}
		took := time.Since(start)
		for _, e := range []peerEnd{from, to} {
			done := make([]byte, 4)
			if err := errors.Join(e.Context.Use(), e.Context.CopyFromDevice(done, e.words+doneAt)); err != nil {
				return nil, err
			}
			if got := uint32(done[0]) | uint32(done[1])<<8; got != rounds {
				return nil, nil
			}
		}
		if s := took.Seconds() / (2 * rounds); best < 0 || s < best {
			best = s
		}
	}
	return &best, nil
}

// launch starts this end of the ping-pong.
func (e peerEnd) launch(peer peerEnd, first uint32) error {
	mine, theirs, done := e.words, peer.words, e.words+doneAt
	n, patient := uint32(rounds), uint32(patience)
	args, err := e.pingpong.Args(&mine, &theirs, &done, &n, &first, &patient)
	if err != nil {
		return err
	}
	if err := e.Context.Use(); err != nil {
		return err
	}
	return e.pingpong.Launch(e.stream, driver.Dim{X: 1}, driver.Dim{X: 1}, 0, args)
}
