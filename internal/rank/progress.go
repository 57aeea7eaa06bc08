package rank

import (
	"context"
	"sync"
	"time"

	"jacobi/internal/awake"
	"jacobi/internal/outlook"
	"jacobi/internal/roster"
	"jacobi/solver"
)

const (
	progressInterval = 200 * time.Millisecond // between events
	lineInterval     = 5 * time.Second        // between lines of a run without a launcher
)

// progress publishes the progress of the run.
type progress struct {
	mu               sync.Mutex // norms and swept are called by several goroutines
	team             *roster.Team
	points           float64 // of the mesh, times the sweeps of an iteration
	first            int     // sweeps done before this start
	max              int
	start, published time.Time
	course           course
	step             string         // see roster.Event
	cadence          solver.Cadence // of the norms; of all cycles
	clock            *awake.Clock
	speed            speed
	norm             float64      // the newest one; 0 before it
	say              func(string) // gets a line every lineInterval; nil under a launcher, which shows progress itself
	said             time.Time
}

// course forecasts the end of a run.
type course interface {
	Add(sweep int, norm float64)
	End() (sweeps int, reason solver.StopReason, ok bool)
}

// newProgress returns the progress of a run that starts now.
func (r *ready) newProgress(ctx context.Context, forecast *outlook.Outlook) *progress {
	c, m, now := r.Config.Solver, r.layout.Mesh, time.Now()
	p := &progress{
		team: r.team, points: float64(m.NX) * float64(m.NY) * float64(r.sweepsOf(1)), first: r.resumed.Start.Sweeps,
		max:   c.MaxIterations,
		start: now, cadence: r.norms(),
		course: outlook.NewCourse(forecast, c.Tolerance, c.MaxIterations), clock: awake.Of(ctx), said: now,
	}
	if c.Multigrid() {
		p.course, p.step = outlook.NewCycles(c.Tolerance, c.RelativeTolerance, c.MaxIterations), c.Step()
	}
	if r.plan.chebyshev != nil {
		p.course = outlook.NewChebyshev(c, r.plan.chebyshev)
	}
	if !r.launched() {
		p.say = func(line string) { r.Log.Info(line) }
	}
	p.speed.add(p.clock.Now(), p.first)
	if r.id.Rank == 0 {
		p.publish(roster.Event{Kind: roster.Started, Step: p.step, Sweeps: p.first, MaxSweeps: p.max})
	}
	return p
}

// norms handles the final norms of sweep first and of the next ones that have a norm.
func (p *progress) norms(first int, norms []float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.cadence.Sweep(p.cadence.In(first) + len(norms) - 1)
	p.norm = norms[len(norms)-1]
	if p.cadence.Stride > 1 {
		p.course.Add(last, p.norm)
	}
	if !p.due() {
		return
	}
	sweeps := last + 1
	if p.step != "" {
		sweeps = first // norms are those of the fields before the cycles
	}
	if p.cadence.Stride <= 1 {
		p.course.Add(last, p.norm)
	}
	p.show(sweeps)
}

// swept handles sweeps without norms.
func (p *progress) swept(sweeps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.norm > 0 && p.due() {
		p.show(sweeps)
	}
}

// due reports whether it is time for an event.
func (p *progress) due() bool {
	now := time.Now()
	if now.Sub(p.published) < progressInterval {
		return false
	}
	p.published = now
	return true
}

// show publishes an event for a number of sweeps.
func (p *progress) show(sweeps int) {
	e := p.event(sweeps, p.norm, time.Since(p.start))
	p.speed.add(p.clock.Now(), sweeps)
	end, reason, ok := p.course.End()
	if ok {
		e.End, e.Left = end, p.speed.timeFor(end-sweeps)
	}
	e.Rounding = !ok && reason == solver.Stalled
	p.tell(e)
}

// last publishes the final state.
func (p *progress) last(r solver.Result) {
	if p.team.Self().Rank == 0 {
		e := p.event(r.Sweeps, r.Norm, r.Times.Total)
		e.End = r.Sweeps
		p.tell(e)
	}
}

// event returns the event for a number of sweeps, the last of which had the given norm.
func (p *progress) event(sweeps int, norm float64, elapsed time.Duration) roster.Event {
	return roster.Event{
		Kind: roster.Progress, Step: p.step, Sweeps: sweeps, MaxSweeps: p.max, Norm: roster.Number(norm),
		Elapsed: elapsed,
		GLUPs:   roster.Number(p.points * float64(sweeps-p.first) / elapsed.Seconds() / 1e9),
	}
}

// tell publishes e, and says it if it is time for a line.
func (p *progress) tell(e roster.Event) {
	p.publish(e)
	if now := time.Now(); p.say != nil && now.Sub(p.said) >= lineInterval {
		p.said = now
		p.say(e.Progress())
	}
}

// publish sends e. A failure to send progress does not fail the run.
func (p *progress) publish(e roster.Event) { _ = p.team.Publish(e) }
