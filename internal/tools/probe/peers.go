package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

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
	if err != nil {
		return r, fmt.Errorf("shared memory: %w", err)
	}
	large, err := sharedExchange(ctx, sharedBytes)
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
		err = gpu.WithCrew(m.GPUs, func(c *gpu.Crew) (err error) {
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
		{peerRates, "B/s", func(p pair) any { return p.rate }},
		{"copies both ways at once", "B/s", func(p pair) any { return p.both }},
		{"latency of a write", "s", func(p pair) any { return p.latency }},
	} {
		t := Table{Title: of.title, Columns: []Column{{"", ""}}}
		for i := range m.GPUs {
			t.Columns = append(t.Columns, Column{fmt.Sprintf("GPU %d", m.GPUs[i].Index), of.unit})
			cells := make([]any, 1+len(m.GPUs))
			cells[0] = fmt.Sprintf("GPU %d", m.GPUs[i].Index)
			for _, p := range pairs {
				for j := range m.GPUs {
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

// peerRates is the title of the table that is drawn.
const peerRates = "copies: a row sends and a column receives"

// drawPeers draws the rates of all pairs as a heat map.
func drawPeers(tables []Table) ([]byte, error) {
	for _, t := range tables {
		if t.Title == peerRates {
			return t.heatMap("Copies between GPUs, GB/s (a row sends, a column receives)", 1e9)
		}
	}
	return nil, nil
}

// peerEnd is what one GPU holds for the measurement.
type peerEnd struct {
	*gpu.GPU
	from, to           driver.DevicePtr
	mine, done, theirs driver.DevicePtr // of the ping-pong
	first              uint32           // 1 for the GPU that begins it
	pingpong           gpu.Kernel
}

// do calls functions one after the other in the context of the GPU.
func (e *peerEnd) do(all ...func() error) error {
	err := e.Context.Use()
	for i := 0; err == nil && i < len(all); i++ {
		err = all[i]()
	}
	return err
}

// pairsOf measures every pair, from the goroutine of the first GPU.
func pairsOf(ctx context.Context, c *gpu.Crew, r *Result) (pairs []pair, err error) {
	bytes, ends, rooms := int64(peerBytes), make([]*peerEnd, len(c.GPUs)), make([]int64, len(c.GPUs))
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
	err = c.Each(func(i int) error {
		g := c.GPUs[i]
		e := &peerEnd{GPU: g, mine: g.Alloc(wordBytes), from: g.Alloc(bytes), to: g.Alloc(bytes)}
		e.done = e.mine + doneAt
		n, patient := uint32(rounds), uint32(patience)
		e.pingpong = g.Kernel("probe_pingpong", &e.mine, &e.theirs, &e.done, &n, &e.first, &patient)
		ends[i] = e
		return g.Err()
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

// send returns a function that queues copies from one GPU to another.
func (b peerBench) send(from, to *peerEnd) func() error {
	return func() error {
		for range peerCopies {
			if err := from.Stream.CopyToPeer(to.Context, to.to, from.from, int(b.bytes)); err != nil {
				return err
			}
		}
		return nil
	}
}

// copies measures copies, which are to bring bytes that only this pair sends.
func (b peerBench) copies(ctx context.Context, p *pair, sent byte) error {
	from, to := b.from, b.to
	there, back := b.send(from, to), b.send(to, from)
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
