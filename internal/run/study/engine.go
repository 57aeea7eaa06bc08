// Package study does many runs on ranks that stay: those of a study, and those that a program asks for.
package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/desk"
	"jacobi/internal/run/hosts"
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

// Engine does jobs, one after the other.
type Engine struct {
	Start    configs.Config // of the ranks; see StartConfig
	Where    hosts.Where
	Options  attempt.Options // of every attempt; Watch and Show are the engine's
	Restarts int             // at most
	// Next returns the next job. It waits for one, and returns false if none follows, or an error once ctx has ended.
	Next func(ctx context.Context) (Job, bool, error)
	// Done takes the result of a job, in the order of Next. An error ends the engine.
	Done func(Job, Result) error
	// Event, if not nil, takes events of a run that goes on.
	Event func(Job, roster.Event)

	mu       sync.Mutex
	open     []ordered // jobs that the ranks have, and those with a Fault between them, in their order
	again    []Job     // jobs that ranks had when they died, but for the one at which they were
	number   int
	complete bool  // all jobs are done
	fault    error // of Done
	conn     *wire.Conn
	runID    string
	// cancelled is the last job that was cancelled while it was on its way to the ranks.
	cancelled int
}

// ordered is a job that the ranks have.
type ordered struct {
	Job
	number int
}

// ahead is the number of jobs that ranks have at a time: while they do one, the next is on its way.
const ahead = 2

// Run starts the ranks and returns when all jobs are done, or when the ranks have ended without that.
func (e *Engine) Run(ctx context.Context) (end attempt.Ended, err error) {
	where := e.Where
	for restarts := 0; ; restarts++ {
		p, err := plan.Make(ctx, e.Start, where, e.Options.Screen.Say)
		if err != nil {
			return end, err
		}
		o := e.Options
		o.Many, o.Watch, o.Show = true, e.attend, func() attempt.Progress { return shown{e} }
		o.Starter.Vars = append([]string{desk.Env + "=1"}, o.Starter.Vars...)
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

// settle gives the job at which the ranks have ended its result, and keeps those that follow.
func (e *Engine) settle(end attempt.Ended) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.open) > 0 && end.Err != nil {
		e.pass(Result{Failed: end.Err.Error()})
		e.refuseFirst()
	}
	var left []Job
	for _, j := range e.open {
		left = append(left, j.Job)
	}
	e.open, e.again = nil, append(left, e.again...)
	return e.fault
}

// attend gives the ranks of an attempt their orders until stop is called.
func (e *Engine) attend(ctx context.Context, conn *wire.Conn, runID string) (stop func(), err error) {
	d, err := desk.AtLauncher(ctx, conn, runID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	e.mu.Lock()
	e.number, e.conn, e.runID = 0, conn, runID
	e.mu.Unlock()
	room := make(chan struct{}, ahead)
	var both sync.WaitGroup
	both.Go(func() { e.collect(ctx, d, room) })
	both.Go(func() { e.feed(ctx, d, room) })
	return func() {
		cancel()
		d.Close()
		both.Wait()
	}, nil
}

// feed orders jobs while there is room for them.
func (e *Engine) feed(ctx context.Context, d *desk.Desk, room chan struct{}) {
	for {
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
		job, more, err := e.next(ctx)
		if err != nil {
			return
		}
		if !more {
			_ = d.Send(ctx, desk.Order{End: true}) // fails only when the attempt ends anyway
			return
		}
		if job.Fault != nil {
			if !e.refuse(job) {
				return
			}
			room <- struct{}{} // which this goroutine has just made
			continue
		}
		document, err := configs.Document(job.Config)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.number++
		order := desk.Order{Number: e.number, Document: document, Hash: job.Hash, Progress: job.Progress}
		e.open = append(e.open, ordered{job, e.number})
		cancelled := job.ID == e.cancelled
		e.mu.Unlock()
		if d.Send(ctx, order) != nil {
			return
		}
		if cancelled && e.Cancel(ctx, job.ID) != nil {
			return
		}
	}
}

// refuse gives a job its result that the ranks do not get, once those before it have theirs.
func (e *Engine) refuse(j Job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = append(e.open, ordered{Job: j})
	e.refuseFirst()
	return e.fault == nil
}

// refuseFirst gives the first jobs their results as long as they have a Fault.
func (e *Engine) refuseFirst() {
	for len(e.open) > 0 && e.open[0].Fault != nil {
		e.pass(Result{Refused: e.open[0].Fault.Error()})
	}
}

// pass gives the first job its result.
func (e *Engine) pass(r Result) {
	job := e.open[0].Job
	e.open = e.open[1:]
	if e.fault == nil {
		e.fault = e.Done(job, r)
	}
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
	fault := e.fault
	e.mu.Unlock()
	if fault != nil {
		return Job{}, false, nil
	}
	job, more, err := e.Next(ctx)
	if err == nil && !more {
		e.mu.Lock()
		e.complete = true
		e.mu.Unlock()
	}
	return job, more, err
}

// collect takes the answers. Each one makes room for another order.
func (e *Engine) collect(ctx context.Context, d *desk.Desk, room chan<- struct{}) {
	for {
		var a desk.Answer
		if err := d.Recv(ctx, &a); err != nil {
			return
		}
		free := 1
		if a.Number == 0 {
			free = ahead
		} else if !e.answered(a) {
			return
		}
		for range free {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// answered passes the result of a job on.
func (e *Engine) answered(a desk.Answer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.open) == 0 || e.open[0].number != a.Number {
		return false
	}
	r := Result{Refused: a.Refused, Failed: a.Failed}
	if a.Report != nil {
		r.Report = new(output.Report)
		if err := json.Unmarshal(a.Report, r.Report); err != nil {
			r = Result{Failed: fmt.Sprintf("report of the run: %v", err)}
		}
	}
	e.pass(r)
	e.refuseFirst()
	return e.fault == nil
}

// Cancel stops a job that Next has given, after an iteration that all ranks have done.
func (e *Engine) Cancel(ctx context.Context, id int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range e.open {
		if j.ID == id {
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
