// Package study does many runs on ranks that stay: those of a study, and those that a program asks for.
package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
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
	Hash     bool   // the report has the SHA-256 of the field
	Progress bool   // Engine.Event gets the progress
	Tag      []byte // of the caller
	Fault    error  // why the run cannot begin: the ranks do not get it
}

// Result is what became of a Job. One of its parts is set.
type Result struct {
	Report  *output.Report
	Refused string // why the run has not begun
	Failed  string // why it has no end
}

// Engine does jobs. Small ones go to one rank each, and several ranks are at such jobs at a time; see Alone.
type Engine struct {
	Start    configs.Config // of the ranks; see StartConfig
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

	mu       sync.Mutex
	open     []ordered // jobs without a result for Done, in their order
	again    []Job     // jobs that ranks had when they died, but for the one at which they were
	number   int
	complete bool  // all jobs are done
	fault    error // of Done
	conn     *wire.Conn
	runID    string
	// cancelled is the last job that was cancelled while it was on its way to the ranks.
	cancelled int
}

// ordered is a job that Next has given.
type ordered struct {
	Job
	number int     // of its order; 0 before that
	rank   int     // that does it, or everyone
	result *Result // nil before the answer; results of later jobs wait for it
}

// Run starts the ranks and returns when all jobs are done, or when the ranks have ended without that.
func (e *Engine) Run(ctx context.Context) (end attempt.Ended, err error) {
	where := e.Where
	for restarts := 0; ; restarts++ {
		p, err := plan.Make(ctx, e.Start, where, e.Options.Screen.Say)
		if err != nil {
			return end, err
		}
		o := e.Options
		o.Many, o.Show = true, func() attempt.Progress { return shown{e} }
		o.Watch = func(ctx context.Context, conn *wire.Conn, runID string) (stop func(), err error) {
			return e.attend(ctx, conn, runID, len(p.Ranks))
		}
		o.Starter.Vars = append([]string{roster.EnvStudy + "=1"}, o.Starter.Vars...)
		if end, err = attempt.Run(ctx, p, o); err != nil {
			return end, err
		}
		if err := e.settle(end); err != nil {
			return end, err
		}
		if e.complete || !end.MayRestart() || restarts == e.Restarts {
			return end, nil
		}
		where.Lost = append(where.Lost, end.LostHosts...)
		e.Options.Screen.Restart(end.Err.Error(), fmt.Sprintf("restart %d of %d: from the next run", restarts+1,
			e.Restarts))
	}
}

// Complete reports whether all jobs are done.
func (e *Engine) Complete() bool { return e.complete }

// settle passes the results on that are known, and keeps the other jobs. One of them takes the blame for the end.
func (e *Engine) settle(end attempt.Ended) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.blamed(end.Err); i >= 0 {
		e.open[i].result = &Result{Failed: end.Err.Error()}
	}
	var left []Job
	for _, j := range e.open {
		if j.result == nil {
			left = append(left, j.Job)
		} else {
			e.pass(j)
		}
	}
	e.open, e.again = nil, append(left, e.again...)
	e.complete = e.complete && len(e.again) == 0
	return e.fault
}

// blamed returns the open job at which the ranks have ended with an error: the first that the rank has which failed, if
// that is known. It returns -1 if there is none.
func (e *Engine) blamed(err error) int {
	if err == nil {
		return -1
	}
	failed, known := errors.AsType[*launch.RankError](err)
	return slices.IndexFunc(e.open, func(j ordered) bool {
		return j.result == nil && j.number > 0 && (!known || j.rank == everyone || j.rank == failed.Rank)
	})
}

// pass gives a job its result.
func (e *Engine) pass(j ordered) {
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
func (e *Engine) next(ctx context.Context) (Job, bool, error) {
	e.mu.Lock()
	if len(e.again) > 0 {
		defer e.mu.Unlock()
		job := e.again[0]
		e.again = e.again[1:]
		return job, true, nil
	}
	e.mu.Unlock()
	job, more, err := e.Next(ctx)
	if err == nil && !more {
		e.mu.Lock()
		e.complete = true
		e.mu.Unlock()
	}
	return job, more, err
}

// Cancel stops a job that Next has given, after an iteration that all ranks have done.
func (e *Engine) Cancel(ctx context.Context, id int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range e.open {
		if j.ID == id && j.number > 0 {
			return roster.RequestStopOf(ctx, e.conn, e.runID, j.number)
		}
	}
	e.cancelled = id
	return nil
}

// shown passes events of runs on.
type shown struct{ e *Engine }

// Event implements attempt.Progress.
func (s shown) Event(event roster.Event) {
	e := s.e
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

// Close implements attempt.Progress.
func (shown) Close() {}

// StartConfig returns the configuration with which the ranks of c start: the keys that belong to the start, and a mesh
// of which every rank has rows.
func StartConfig(c configs.Config) (configs.Config, error) {
	start := configs.Default()
	start.Run, start.Halo, start.Device, start.NATS, start.Log = c.Run, c.Halo, c.Device, c.NATS, c.Log
	start.Grid.NX, start.Grid.NY = 65, max(64, c.Halo.Depth)*c.Run.Ranks+2
	start.Output = configs.Output{Dir: c.Output.Dir, PictureScale: c.Output.PictureScale}
	return start, errors.Join(configs.CheckMany(c), configs.Validate(start))
}
