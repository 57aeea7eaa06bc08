package rank

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/halo"
	"jacobi/internal/device"
	"jacobi/internal/roster"
	"jacobi/internal/stats"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// watch lets Options.Watch have the events of the run.
func (j *joined) watch(ctx context.Context, open *closers) error {
	if j.Watch == nil || j.launched() || j.id.Rank != 0 {
		return nil
	}
	stop, err := j.team.Watch(ctx, j.Watch)
	if err == nil {
		open.add(func() error { stop(); return nil })
	}
	return err
}

// counts are what the sweeps count for the statistics, for another goroutine to read. A nil *counts counts nothing.
type counts struct {
	haloWait, normWait atomic.Int64  // nanoseconds
	posted, received   atomic.Uint64 // exchanges
}

// exchange returns x with its calls counted.
func (c *counts) exchange(x solver.Exchange) solver.Exchange {
	if c == nil || x == nil {
		return x
	}
	return countedExchange{x, c}
}

// cycle returns x with its calls counted.
func (c *counts) cycle(x multigrid.Exchange) multigrid.Exchange {
	if c == nil || x == nil {
		return x
	}
	return countedCycle{x, c}
}

// reducer returns r with its calls counted.
func (c *counts) reducer(r solver.Reducer) solver.Reducer {
	if c == nil {
		return r
	}
	return countedReducer{r, c}
}

// since adds the time since start to total.
func since(total *atomic.Int64, start time.Time) { total.Add(int64(time.Since(start))) }

type countedExchange struct {
	solver.Exchange
	*counts
}

// Post implements solver.Exchange.
func (x countedExchange) Post(ctx context.Context, n solver.ExchangeNumber) error {
	defer since(&x.haloWait, time.Now())
	x.posted.Add(1)
	return x.Exchange.Post(ctx, n)
}

// Wait implements solver.Exchange.
func (x countedExchange) Wait(ctx context.Context, n solver.ExchangeNumber) error {
	defer since(&x.haloWait, time.Now())
	x.counts.received.Add(1)
	return x.Exchange.Wait(ctx, n)
}

type countedCycle struct {
	multigrid.Exchange
	*counts
}

// Overlap implements multigrid.Exchange.
func (x countedCycle) Overlap(ctx context.Context, level int, a multigrid.Array) error {
	defer since(&x.haloWait, time.Now())
	return x.Exchange.Overlap(ctx, level, a)
}

// Gather implements multigrid.Exchange.
func (x countedCycle) Gather(ctx context.Context) error {
	defer since(&x.haloWait, time.Now())
	return x.Exchange.Gather(ctx)
}

type countedReducer struct {
	solver.Reducer
	*counts
}

// Post implements solver.Reducer.
func (r countedReducer) Post(ctx context.Context, pass uint64, c solver.Contribution) error {
	defer since(&r.normWait, time.Now())
	return r.Reducer.Post(ctx, pass, c)
}

// Wait implements solver.Reducer.
func (r countedReducer) Wait(ctx context.Context, pass uint64) (solver.Contribution, error) {
	defer since(&r.normWait, time.Now())
	return r.Reducer.Wait(ctx, pass)
}

// reporter publishes the statistics of this rank about once in stats.Interval, from a goroutine of its own. A nil
// *reporter publishes nothing.
type reporter struct {
	r      *ready
	points float64 // of the stripe, times the sweeps of an iteration
	memory int64   // see memoryBytes
	start  time.Time
	quit   chan struct{}
	ended  sync.WaitGroup
	once   sync.Once

	last   stats.Rank // the one published last
	health device.HealthReader
	gpu    *stats.GPU // its newest readings
	read   time.Time  // when they were taken
}

// newReporter starts the reporter of a run whose sweeps begin now; nil if nobody wants statistics.
func (r *ready) newReporter(open *closers) *reporter {
	if r.counts == nil {
		return nil
	}
	s := r.layout.Stripe
	p := &reporter{r: r, points: float64(s.Rows()) * float64(r.layout.Mesh.NX) * float64(r.sweepsOf(1)),
		memory: r.memoryBytes(), start: time.Now(), quit: make(chan struct{})}
	if r.chosen != nil {
		_, p.health = r.soakDevice(open)
	}
	p.ended.Go(p.run)
	return p
}

// run publishes until the reporter is stopped.
func (p *reporter) run() {
	tick := time.NewTicker(stats.Interval)
	defer tick.Stop()
	for {
		p.publish(p.take(p.r.team.Sweeps()))
		select {
		case <-tick.C:
		case <-p.quit:
			return
		}
	}
}

// stop ends the messages. It may be called again.
func (p *reporter) stop() {
	if p != nil {
		p.once.Do(func() { close(p.quit) })
		p.ended.Wait()
	}
}

// finish stops the reporter and publishes the final message, which agrees with the report.
func (p *reporter) finish(result solver.Result) {
	if p == nil {
		return
	}
	p.stop()
	s := p.take(result.Sweeps)
	s.Final, s.NormWait = true, result.Times.NormWait.Seconds()
	s.Elapsed = max(result.Times.Total.Seconds(), p.last.Elapsed) // it must not fall
	if s.HaloWait != nil {
		s.HaloWait = new(result.Times.HaloWait.Seconds())
	}
	s.Recent = ratesSince(s, stats.Rank{HaloWait: new(0.)})
	p.publish(s)
}

// publish sends s. A failure to send it does not fail the run.
func (p *reporter) publish(s stats.Rank) {
	p.last = s
	data, err := json.Marshal(s)
	if err != nil {
		return // a number that JSON has no form for: the next message may have none
	}
	_ = p.r.team.Publish(roster.Event{Kind: roster.Stats, Step: p.r.step(), Sweeps: s.Sweeps,
		MaxSweeps: p.r.Config.Solver.MaxIterations, GLUPs: roster.Number(s.Recent.GLUPs), Report: data})
}

// step returns what the sweeps of an event count; see roster.Event.
func (p *prepared) step() string {
	if c := p.Config.Solver; c.Multigrid() {
		return c.Step()
	}
	return ""
}

// take returns the statistics after the given number of sweeps.
func (p *reporter) take(sweeps int) stats.Rank {
	r, first := p.r, p.r.resumed.Start.Sweeps
	sweeps = max(sweeps, first, p.last.Sweeps) // 0 before the first norm
	s := stats.Rank{
		Host: r.team.Self().Host, Backend: r.deviceName(), Device: r.describe,
		Stripe: [2]int{r.layout.Stripe.Lo, r.layout.Stripe.Hi}, Elapsed: time.Since(p.start).Seconds(),
		Sweeps: sweeps, Start: first, Updates: p.points * float64(sweeps-first),
		NormWait: time.Duration(r.counts.normWait.Load()).Seconds(),
		Halos:    r.haloStats(), Memory: stats.Memory{Field: p.memory}, GPU: p.readGPU(),
	}
	if !r.gpuWaits() {
		s.HaloWait = new(time.Duration(r.counts.haloWait.Load()).Seconds())
	}
	if conn, ok := r.conn.(interface{ Refused() uint64 }); ok {
		s.RefusedMessages = conn.Refused()
	}
	if r.saver != nil && r.id.Rank == 0 {
		c := r.saver.Stats()
		s.Checkpoints = &stats.Checkpoints{Written: c.Written, Failed: c.Failed, Sweeps: c.Sweeps, Bytes: c.Bytes,
			Seconds: c.Took.Seconds()}
	}
	if status, err := os.ReadFile(processStatus); err == nil { // the report warns of a failure
		s.Memory.Resident, _ = statusBytes(status, "VmRSS")
		s.Memory.Peak, _ = statusBytes(status, "VmHWM")
	}
	s.Recent = ratesSince(s, p.last)
	return s
}

// ratesSince returns the rates of s since before.
func ratesSince(s, before stats.Rank) stats.Recent {
	d := s.Elapsed - before.Elapsed
	if d <= 0 {
		return stats.Recent{}
	}
	share := func(waited float64) float64 { return min(1, max(0, waited/d)) }
	r := stats.Recent{Seconds: d, GLUPs: (s.Updates - before.Updates) / d / 1e9,
		NormWait: share(s.NormWait - before.NormWait)}
	if s.HaloWait != nil {
		waited := *s.HaloWait
		if before.HaloWait != nil {
			waited -= *before.HaloWait
		}
		r.HaloWait = new(share(waited))
	}
	return r
}

// haloStats returns the traffic with the neighbours.
func (l *loaded) haloStats() (all []stats.Halo) {
	traffic, nats := l.links.Traffic(), l.links.Stats()
	for side, has := range l.layout.Neighbour {
		if !has {
			continue
		}
		h := stats.Halo{Side: solver.Side(side).String(), Neighbour: l.neighbour(solver.Side(side)).Rank,
			Transport: l.links.Info[side].Transport, Sent: traffic[side].Sent,
			Received: traffic[side].Bytes - traffic[side].Sent}
		if t := l.direct[side].Transport; t != "" { // the GPU copies the rows
			rows := uint64(l.layout.Depth) * uint64(l.layout.Mesh.RowBytes())
			h.Transport, h.Sent, h.Received = t, rows*l.counts.posted.Load(), rows*l.counts.received.Load()
			if l.levels != nil {
				_, h.Sent = l.levels.direct.Traffic()
				h.Received = h.Sent
			}
		} else if s := l.links.DirectStats(solver.Side(side)); s != nil && h.Transport == halo.TransportDirect {
			h.Asked, h.Resent, h.Refused, h.Lost = s.Asked, s.Resent, s.Refused, s.Lost
		} else if s := nats[side]; s != nil {
			h.Asked, h.Resent, h.Duplicates, h.Refused = s.Asked, s.Resent, s.Duplicates, s.Refused
			h.Lost = s.Lost + s.Dropped
		}
		all = append(all, h)
	}
	return all
}

// readGPU returns readings of the rank's GPU that are at most stats.GPUInterval old.
func (p *reporter) readGPU() *stats.GPU {
	if p.health == nil || time.Since(p.read) < stats.GPUInterval {
		return p.gpu
	}
	p.read = time.Now()
	h, err := p.health.Health(p.r.chosen.UUID)
	if err != nil { // the GPU itself fails soon if it is lost
		return p.gpu
	}
	known := func(n int) *int64 {
		if n == device.Unknown {
			return nil
		}
		return new(int64(n))
	}
	p.gpu = &stats.GPU{Index: p.r.chosen.Index, Name: p.r.chosen.Name, UUID: p.r.chosen.UUID,
		Celsius: known(h.Celsius), Milliwatts: known(h.Milliwatts), UsedBytes: known(h.UsedBytes),
		SMClock: known(h.SMClock), Corrected: known(h.Corrected), Uncorrected: known(h.Uncorrected),
		Throttled: h.Throttled}
	return p.gpu
}

// processStatus describes this process.
const processStatus = "/proc/self/status"

// statusBytes returns a number of bytes from the text of processStatus.
func statusBytes(status []byte, name string) (int64, bool) {
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == name+":" && string(f[2]) == "kB" {
			kib, err := strconv.ParseInt(string(f[1]), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
