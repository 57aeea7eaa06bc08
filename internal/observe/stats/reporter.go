package stats

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// Options are what a Reporter takes of its run.
type Options struct {
	Comm      *roster.Comm
	Rank      Rank    // what does not change: host, device, stripe, start and the memory of the field
	Points    float64 // of the stripe, times the sweeps of an iteration
	Step      string  // what an iteration is; see roster.Event
	Max       int     // iterations at most
	HostWaits bool    // for the rows of neighbours, and not the GPU itself
	GPU       *GPU    // its names; nil if the CPU sweeps
	// Add adds what others count, after a number of exchanges in which this rank has sent and received rows.
	Add func(s *Rank, posted, received uint64)
}

// Reporter publishes the statistics of this rank about once in Interval, from a goroutine of its own. A nil *Reporter
// publishes nothing.
type Reporter struct {
	Options
	start time.Time
	quit  chan struct{}
	ended sync.WaitGroup
	once  sync.Once

	// What the steps of the run add up to so far.
	haloWait, normWait atomic.Int64  // nanoseconds
	posted, received   atomic.Uint64 // exchanges

	last   Rank             // the one published last
	health device.Inventory // nil without readings
	gpu    *GPU             // its newest readings
	read   time.Time        // when they were taken
}

// Start starts the Reporter of a run whose sweeps begin now.
func Start(o Options) *Reporter {
	p := &Reporter{Options: o, start: time.Now(), quit: make(chan struct{})}
	if o.GPU != nil {
		p.health, _ = device.OpenHealth(o.GPU.UUID) // not every GPU has readings
	}
	p.ended.Go(p.run)
	return p
}

// run publishes until the Reporter is stopped.
func (p *Reporter) run() {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		p.publish(p.take(p.Comm.Iterations()))
		select {
		case <-tick.C:
		case <-p.quit:
			return
		}
	}
}

// OnStep adds a step, as solver.Watch adds it to the times of the run, and hands it on to next, which may be nil.
func (p *Reporter) OnStep(next solver.OnStep) solver.OnStep {
	if p == nil {
		return next
	}
	return func(s solver.Step, start time.Time, took time.Duration) {
		p.count(s, took)
		if next != nil {
			next(s, start, took)
		}
	}
}

func (p *Reporter) count(s solver.Step, took time.Duration) {
	switch s.Kind.Share() {
	case solver.ShareHaloWait:
		p.haloWait.Add(int64(took))
	case solver.ShareNormWait:
		p.normWait.Add(int64(took))
	}
	switch s.Kind {
	case solver.StepPost:
		p.posted.Add(1)
	case solver.StepWait:
		p.received.Add(1)
	}
}

// stop ends the messages. It may be called again.
func (p *Reporter) stop() {
	p.once.Do(func() { close(p.quit) })
	p.ended.Wait()
}

// Close ends the messages and closes what reads the GPU.
func (p *Reporter) Close() error {
	if p == nil {
		return nil
	}
	p.stop()
	if p.health == nil {
		return nil
	}
	return p.health.Close()
}

// Finish publishes the final message, which agrees with the report.
func (p *Reporter) Finish(result solver.Result) {
	if p == nil {
		return
	}
	p.stop()
	s := p.take(result.Iterations)
	s.Final = true
	s.Elapsed = max(result.Times.Total.Seconds(), p.last.Elapsed) // it must not fall
	s.Recent = ratesSince(s, Rank{HaloWait: new(0.)})
	p.publish(s)
}

// publish sends s. A failure to send it does not fail the run.
func (p *Reporter) publish(s Rank) {
	p.last = s
	data, err := json.Marshal(s)
	if err != nil {
		return // a number that JSON has no form for: the next message may have none
	}
	_ = p.Comm.Publish(roster.Event{Kind: roster.Stats, Step: p.Step, Sweeps: s.Sweeps, MaxSweeps: p.Max,
		GLUPs: roster.Number(s.Recent.GLUPs), Report: data})
}

// take returns the statistics after the given number of sweeps.
func (p *Reporter) take(sweeps int) Rank {
	s := p.Rank
	s.Sweeps = max(sweeps, s.Start, p.last.Sweeps) // 0 before the first norm
	s.Elapsed = time.Since(p.start).Seconds()
	s.Updates = p.Points * float64(s.Sweeps-s.Start)
	s.NormWait = time.Duration(p.normWait.Load()).Seconds()
	if p.HostWaits {
		s.HaloWait = new(time.Duration(p.haloWait.Load()).Seconds())
	}
	s.Memory.Resident, s.Memory.Peak, _ = ResidentMemory() // the report warns of a failure
	s.GPU = p.readGPU()
	p.Add(&s, p.posted.Load(), p.received.Load())
	s.Recent = ratesSince(s, p.last)
	return s
}

// ratesSince returns the rates of s since before.
func ratesSince(s, before Rank) Recent {
	d := s.Elapsed - before.Elapsed
	if d <= 0 {
		return Recent{}
	}
	share := func(waited float64) float64 { return min(1, max(0, waited/d)) }
	r := Recent{Seconds: d, GLUPs: (s.Updates - before.Updates) / d / 1e9,
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

// readGPU returns readings of the rank's GPU that are at most GPUInterval old.
func (p *Reporter) readGPU() *GPU {
	if p.health == nil || time.Since(p.read) < GPUInterval {
		return p.gpu
	}
	p.read = time.Now()
	h, err := p.health.Health(p.GPU.UUID)
	if err != nil { // the GPU itself fails soon if it is lost
		return p.gpu
	}
	known := func(n int) *int64 {
		if n == device.Unknown {
			return nil
		}
		return new(int64(n))
	}
	p.gpu = &GPU{Index: p.GPU.Index, Name: p.GPU.Name, UUID: p.GPU.UUID,
		Celsius: known(h.Celsius), Milliwatts: known(h.Milliwatts), UsedBytes: known(h.UsedBytes),
		SMClock: known(h.SMClock), Corrected: known(h.Corrected), Uncorrected: known(h.Uncorrected),
		Throttled: h.Throttled}
	return p.gpu
}
