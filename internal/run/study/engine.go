// Package study does many runs on ranks that stay: those of a study, and those that a program asks for.
package study

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// Job is a run to do.
type Job struct {
	ID       int // of the caller
	Config   configs.Config
	Hash     bool  // the report has the SHA-256 of the field
	Progress bool  // Engine.Event gets the progress
	Fault    error // why the run cannot begin: the ranks do not get it
	// Wanted, if not nil, ends when nobody wants the run any more, with the reason as its cause. One that ranks have
	// stops after an iteration that all have done.
	Wanted context.Context
}

// Result is what became of a Job. One of its parts is set.
type Result struct {
	Report  *output.Report
	Refused string // why the run has not begun
	Failed  string // why it has no end
}

// Engine does jobs. Small ones go to one rank each, and several ranks are at such jobs at a time; see Alone.
type Engine struct {
	Where    hosts.Where
	Options  attempt.Options // of every attempt; Watch and Show are the engine's
	Restarts int             // at most
	Alone    int64           // the most points of a job that one rank does alone
	// Next returns the next job. It waits for one, and returns false if none follows, or an error once ctx has ended.
	Next func(ctx context.Context) (Job, bool, error)
	// Done takes the result of a job, in the order of Next. An error ends the engine.
	Done func(Job, Result) error
	// Event, if not nil, takes events of a run that goes on.
	Event func(Job, roster.Event)
	// Warn takes a warning about a job, before the ranks have it.
	Warn func(Job, string)

	mu      sync.Mutex
	open    []*ordered // jobs that Done has not been given, in their order
	again   []*ordered // those of open that ranks had when they died, but for the one at which they were
	number  int
	drained bool       // Next has no more jobs
	fault   error      // of Done
	started *plan.Plan // of the ranks
}

// ordered is a job that Next has given.
type ordered struct {
	Job
	number int         // of its order; 0 before that
	rank   int         // that does it, or everyone
	result *Result     // nil before the answer; results of later jobs wait for it
	unwant func() bool // ends the watch over Wanted; nil before the order
}

// end sets the result of a job, and lets it be.
func (j *ordered) end(r *Result) {
	if j.result = r; j.unwant != nil {
		j.unwant()
	}
}

// Run starts the ranks of p and returns when all jobs are done, or when the ranks have ended without that.
func (e *Engine) Run(ctx context.Context, p *plan.Plan) (attempt.Ended, error) {
	o := e.Options
	o.Task.Study, o.Watch = true, e.attend
	r := attempt.Restarts{Where: e.Where, Most: e.Restarts, Next: e.restart}
	end, err := r.Run(ctx, p, o, time.Now(), func(*plan.Plan) (func(roster.Event), func()) { return e.tell, nil })
	return end, errors.Join(err, e.settle(false))
}

// restart has the ranks start again for the jobs that have no result.
func (e *Engine) restart(_ context.Context, p *plan.Plan, end attempt.Ended, may bool) (c configs.Config, text string,
	ok bool) {
	e.blame(end.Err)
	ok = may && !e.Complete() && end.MayRestart() && e.settle(true) == nil
	return p.Config, "from the next run", ok
}

// Complete reports whether all jobs have a result.
func (e *Engine) Complete() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drained && !slices.ContainsFunc(e.open, func(j *ordered) bool { return j.result == nil })
}

// blame gives an open job the error with which the ranks have ended: the first that the rank has which failed, if that
// is known.
func (e *Engine) blame(err error) {
	if err == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	failed, known := errors.AsType[*launch.RankError](err)
	i := slices.IndexFunc(e.open, func(j *ordered) bool {
		return j.result == nil && j.number > 0 && (!known || j.rank == everyone || j.rank == failed.Rank)
	})
	if i >= 0 {
		e.open[i].end(&Result{Failed: err.Error()})
	}
}

// settle prepares a restart for the jobs without a result, which keep their order. Without a restart it passes on all
// results that are known.
func (e *Engine) settle(restart bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.passFirst()
	e.again = nil
	for _, j := range e.open {
		if j.number = 0; j.unwant != nil {
			j.unwant()
		}
		switch {
		case j.result == nil:
			e.again = append(e.again, j)
		case !restart:
			e.pass(j)
		}
	}
	if !restart {
		e.open = e.again
	}
	return e.fault
}

// pass gives a job its result.
func (e *Engine) pass(j *ordered) {
	if e.fault == nil {
		e.fault = e.Done(j.Job, *j.result)
	}
}

// passFirst gives the first jobs their results, as far as they are known. It reports whether Done has taken them.
func (e *Engine) passFirst() bool {
	for len(e.open) > 0 && e.open[0].result != nil {
		e.pass(e.open[0])
		e.open = e.open[1:]
	}
	return e.fault == nil
}

// next returns the next job: first those that ranks had before.
func (e *Engine) next(ctx context.Context) (job *ordered, more bool, err error) {
	e.mu.Lock()
	if len(e.again) > 0 {
		defer e.mu.Unlock()
		job, e.again = e.again[0], e.again[1:]
		return job, true, nil
	}
	e.mu.Unlock()
	job = new(ordered)
	job.Job, more, err = e.Next(ctx)
	if job.Wanted == nil {
		job.Wanted = context.Background()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || !more {
		e.drained = err == nil
		return nil, false, err
	}
	e.open = append(e.open, job)
	return job, true, nil
}

// tell passes an event of a run on.
func (e *Engine) tell(event roster.Event) {
	if e.Event == nil || event.Run == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range e.open {
		if j.number == event.Run {
			e.Event(j.Job, event)
		}
	}
}

// StartConfig returns the configuration with which the ranks of c start: the keys that belong to the start, and a mesh
// of which every rank has rows.
func StartConfig(c configs.Config) (configs.Config, error) {
	start := configs.Default()
	start.Run, start.Halo, start.Device, start.NATS, start.Log = c.Run, c.Halo, c.Device, c.NATS, c.Log
	start.Grid.NX, start.Grid.NY = 65, max(64, c.Halo.Depth)*c.Run.Ranks+2
	start.Output = configs.Output{Dir: c.Output.Dir, PictureScale: c.Output.PictureScale}
	return start, errors.Join(configs.CheckMany(c), configs.Validate(start))
}
