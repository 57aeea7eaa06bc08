// Package progress publishes the progress of a run, and hands its norms to subscribers.
package progress

import (
	"context"
	"sync"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

const (
	progressInterval = 200 * time.Millisecond // between events
	lineInterval     = 5 * time.Second        // between lines of a run without a launcher
)

// Progress publishes the progress of a run.
type Progress struct {
	Options
	mu               sync.Mutex // Norms and Swept are called by several goroutines
	start, published time.Time
	course           course
	clock            *awake.Clock
	speed            speed
	norm             float64 // the newest one; 0 before it
	said             time.Time
}

// Options are what a Progress takes of its run.
type Options struct {
	Comm    *roster.Comm
	Points  float64 // of the mesh, times the sweeps of an iteration
	Start   int     // iterations done before this start
	Max     int
	Step    string         // what an iteration is; see roster.Event
	Cadence solver.Cadence // of the norms; of all cycles
	Goal    solver.Goal
	Mute    bool         // nobody watches: no event is published
	Say     func(string) // gets a line now and then; nil under a launcher, which shows progress itself
}

// Start returns the Progress of a run that starts now.
func Start(ctx context.Context, o Options) *Progress {
	now := time.Now()
	p := &Progress{Options: o, start: now, said: now, clock: awake.Of(ctx), course: o.course()}
	p.speed.add(p.clock.Now(), p.Start)
	if p.Comm.Self().Rank == 0 {
		p.publish(roster.Event{Kind: roster.Started, Step: p.Step, Sweeps: p.Start, MaxSweeps: p.Max})
	}
	return p
}

// course returns the course of a run without norms.
func (o Options) course() course {
	return course{target: o.Goal.Target(), max: o.Max, sweeps: o.Step == ""}
}

// Norms handles the final norms of sweep first and of the next ones that have a norm.
func (p *Progress) Norms(first int, norms []float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Goal.Base == 0 {
		p.Goal.Base = norms[0]
		p.course = p.Options.course()
	}
	done := p.Cadence.Sweep(p.Cadence.In(first) + len(norms) - 1)
	if p.Step == "" {
		done++ // the norms of cycles are those of the fields before them
	}
	p.norm = norms[len(norms)-1]
	due := p.due()
	if due || p.Cadence.Stride > 1 {
		p.course.add(done, p.norm)
	}
	if due {
		p.show(done)
	}
}

// Swept handles sweeps without norms.
func (p *Progress) Swept(sweeps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.norm > 0 && p.due() {
		p.show(sweeps)
	}
}

// due reports whether it is time for an event.
func (p *Progress) due() bool {
	now := time.Now()
	if now.Sub(p.published) < progressInterval {
		return false
	}
	p.published = now
	return true
}

// show publishes an event for a number of sweeps.
func (p *Progress) show(sweeps int) {
	e := p.event(sweeps, p.norm, time.Since(p.start))
	p.speed.add(p.clock.Now(), sweeps)
	if end, ok := p.course.end(); ok {
		e.End, e.Left = end, p.speed.timeFor(end-sweeps)
	}
	p.tell(e)
}

// Last publishes the final state.
func (p *Progress) Last(r solver.Result) {
	if p.Comm.Self().Rank == 0 {
		e := p.event(r.Iterations, r.Norm, r.Times.Total)
		e.End = r.Iterations
		p.tell(e)
	}
}

// event returns the event for a number of sweeps, the last of which had the given norm.
func (p *Progress) event(sweeps int, norm float64, elapsed time.Duration) roster.Event {
	return roster.Event{
		Kind: roster.Progress, Step: p.Step, Sweeps: sweeps, MaxSweeps: p.Max, Norm: roster.Number(norm),
		Elapsed: elapsed,
		GLUPs:   roster.Number(p.Points * float64(sweeps-p.Start) / elapsed.Seconds() / 1e9),
	}
}

// tell publishes e, and says it if it is time for a line.
func (p *Progress) tell(e roster.Event) {
	p.publish(e)
	if now := time.Now(); p.Say != nil && now.Sub(p.said) >= lineInterval {
		p.said = now
		p.Say(e.Progress())
	}
}

// publish sends e. A failure to send progress does not fail the run.
func (p *Progress) publish(e roster.Event) {
	if !p.Mute {
		_ = p.Comm.Publish(e)
	}
}

const (
	recordNorms    = 2048                  // norms that are handed over at once
	recordInterval = 50 * time.Millisecond // after which fewer are
	recordAhead    = 64                    // hand-overs that may wait
)

// Recorder hands the norms of a run to consume in a goroutine of its own, so that the sweeps do not wait for the digits
// of the history or for the forecast. Where a pass of a small mesh takes 30 us, writing its norms takes 3 us. Add and
// Close are called from one goroutine.
type Recorder struct {
	consume func(first int, norms []float64) error
	batches chan batch
	done    chan struct{} // closed when the goroutine has ended
	err     error         // of consume; valid once done is closed
	pending batch
	handed  time.Time // the first norms are handed over at once: they show that the run is under way
}

// batch is the norms of sweeps first, first+1, ...
type batch struct {
	first int
	norms []float64
}

// NewRecorder returns a recorder for consume, which is called in order and by one goroutine.
func NewRecorder(consume func(first int, norms []float64) error) *Recorder {
	r := &Recorder{consume: consume, batches: make(chan batch, recordAhead), done: make(chan struct{})}
	go r.run(r.batches)
	return r
}

// run calls consume until batches is closed or consume returns an error.
func (r *Recorder) run(batches <-chan batch) {
	defer close(r.done)
	for b := range batches {
		if r.err = r.consume(b.first, b.norms); r.err != nil {
			return
		}
	}
}

// Add takes the norms of the next sweeps, the first of which is sweep first. It returns the error that consume returned
// for earlier norms.
func (r *Recorder) Add(ctx context.Context, first int, norms []float64) error {
	if len(r.pending.norms) == 0 {
		r.pending = batch{first, make([]float64, 0, recordNorms+len(norms))}
	}
	r.pending.norms = append(r.pending.norms, norms...)
	now := time.Now()
	if len(r.pending.norms) < recordNorms && now.Sub(r.handed) < recordInterval {
		return nil
	}
	r.handed = now
	return r.hand(ctx)
}

// hand hands over the pending norms. It waits while recordAhead hand-overs are waiting.
func (r *Recorder) hand(ctx context.Context) error {
	if len(r.pending.norms) == 0 {
		return nil
	}
	b := r.pending
	r.pending = batch{}
	select {
	case r.batches <- b:
		return nil
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close hands over what is left, waits until all of it is consumed, and returns the error of consume. A second time it
// only returns the error.
func (r *Recorder) Close(ctx context.Context) error {
	if r.batches == nil {
		return r.err
	}
	err := r.hand(ctx)
	close(r.batches)
	r.batches = nil
	<-r.done
	if r.err != nil {
		return r.err
	}
	return err
}
