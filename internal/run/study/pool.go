package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/desk"
	"jacobi/internal/run/plan"
)

// pool are the ranks of an attempt, as their launcher knows them.
type pool struct {
	conn    *wire.Conn
	runID   string
	desks   []*desk.Desk
	changed chan struct{} // holds a token after an answer

	mu   sync.Mutex
	busy []int // by rank: orders without an answer; at first as many as there may be, until the rank takes orders
}

const (
	// ahead is the number of orders that a rank has at a time: while it does one, the next is on its way.
	ahead = 2
	// everyone stands for the ranks of a job that all do together.
	everyone = -1
)

// alone reports whether one rank does the job, and the others do other jobs meanwhile. The ranks of a small mesh would
// wait for each other's messages most of the time.
func (e *Engine) alone(c configs.Config) bool {
	return c.Solver.Entry().Levels && int64(c.Grid.NX)*int64(c.Grid.NY) <= e.Alone
}

// await returns once ready, which is given the orders of each rank, returns true. It returns false if ctx ends.
func (c *pool) await(ctx context.Context, ready func(busy []int) bool) bool {
	for {
		c.mu.Lock()
		ok := ready(c.busy)
		c.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-c.changed:
		case <-ctx.Done():
			return false
		}
	}
}

// add changes the number of orders of a rank, or of everyone.
func (c *pool) add(rank, n int) {
	c.mu.Lock()
	for r := range c.busy {
		if r == rank || rank == everyone {
			c.busy[r] += n
		}
	}
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// choose waits until a rank has room for an order, and returns the one with the fewest. For a job that no rank does
// alone it waits for all, and returns everyone.
func (c *pool) choose(ctx context.Context, alone bool) (rank int, ok bool) {
	if !alone {
		return everyone, c.await(ctx, func(busy []int) bool { return slices.Max(busy) < ahead })
	}
	ok = c.await(ctx, func(busy []int) bool {
		rank = slices.Index(busy, slices.Min(busy))
		return busy[rank] < ahead
	})
	return rank, ok
}

// send sends an order to a rank, or to everyone.
func (c *pool) send(ctx context.Context, rank int, o desk.Order) error {
	for r, d := range c.desks {
		if r == rank || rank == everyone {
			if err := d.Send(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// attend gives the ranks of an attempt their orders until stop is called.
func (e *Engine) attend(ctx context.Context, p *plan.Plan, conn *wire.Conn, runID string) (stop func(), err error) {
	ranks := len(p.Placements)
	desks, err := desk.AtLauncher(ctx, conn, runID, ranks)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ordering, last := context.WithCancelCause(ctx)
	e.mu.Lock()
	e.number, e.started = 0, p
	e.mu.Unlock()
	c := &pool{conn: conn, runID: runID, desks: desks, changed: make(chan struct{}, 1),
		busy: slices.Repeat([]int{ahead}, ranks)}
	var all sync.WaitGroup
	for rank := range desks {
		all.Go(func() { e.collect(ctx, c, rank, last) })
	}
	all.Go(func() {
		defer last(nil)
		e.feed(ordering, c)
		end := desk.Order{End: true, Stopped: errors.Is(context.Cause(ordering), errStopped)}
		_ = c.send(ctx, everyone, end) // fails only when the attempt ends anyway
	})
	return func() {
		cancel()
		for _, d := range desks {
			d.Close()
		}
		all.Wait()
	}, nil
}

// feed orders jobs while there are some, and room for them. It returns once they are done: the launcher waits only
// shortly for the other ranks when one has ended.
func (e *Engine) feed(ctx context.Context, c *pool) {
	ctx, cancel := context.WithCancel(ctx)
	jobs := make(chan *checked, min(len(c.desks), runtime.NumCPU()))
	var reading sync.WaitGroup
	defer reading.Wait() // no job is taken once the attempt has ended
	defer cancel()
	all := false // jobs are given; known once the channel is closed
	reading.Go(func() {
		defer close(jobs)
		all = e.read(ctx, c, &reading, jobs)
	})
	for j := range jobs {
		if !e.order(ctx, c, j) {
			return
		}
	}
	if all {
		c.await(ctx, func(busy []int) bool { return slices.Max(busy) == 0 })
	}
}

// checked is a job and what its check, which goes on until ready is closed, has found.
type checked struct {
	*ordered
	alone    bool
	document []byte // what the ranks get of it
	warnings []string
	err      error
	ready    chan struct{}
}

// read takes jobs as long as a rank has room, and has each of them checked beside those before. It returns true once
// there are no more.
func (e *Engine) read(ctx context.Context, c *pool, checks *sync.WaitGroup, to chan<- *checked) bool {
	for c.await(ctx, func(busy []int) bool { return slices.Min(busy) < ahead }) {
		job, more, err := e.next(ctx)
		if err != nil || !more {
			return err == nil
		}
		j := &checked{ordered: job, alone: e.alone(job.Config), ready: make(chan struct{})}
		checks.Go(func() {
			defer close(j.ready)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(job.Wanted, cancel)()
			j.document, j.warnings, j.err = e.prepare(ctx, job.Job, j.alone)
		})
		select {
		case to <- j:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// order gives a job to ranks. It returns false if no job can follow.
func (e *Engine) order(ctx context.Context, c *pool, job *checked) bool {
	rank, err := e.place(ctx, c, job)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		job.end(&Result{Refused: err.Error()})
		return e.passFirst()
	}
	for _, text := range job.warnings {
		e.Warn(job.Job, text)
	}
	e.mu.Lock()
	e.number++
	number := e.number
	job.number, job.rank = number, rank
	e.mu.Unlock()
	c.add(rank, 1)
	if c.send(ctx, rank, desk.Order{Number: number, Document: job.document, Hash: job.Hash, Progress: job.Progress,
		Alone: rank != everyone}) != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if job.result == nil {
		job.unwant = context.AfterFunc(job.Wanted, func() {
			_ = roster.RequestStop(context.WithoutCancel(ctx), c.conn, c.runID, number) // fails only at the end
		})
	}
	return true
}

// place returns which rank has room for a job that has been checked, or everyone. It returns early, with the reason,
// where the job is not wanted any more.
func (e *Engine) place(ctx context.Context, c *pool, job *checked) (rank int, err error) {
	<-job.ready
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(job.Wanted, cancel)()
	if err = job.err; err == nil {
		rank, _ = c.choose(ctx, job.alone)
	}
	if job.Wanted.Err() != nil {
		err = context.Cause(job.Wanted)
	}
	return rank, err
}

// prepare checks a job as the launcher does that has one alone, and returns what the ranks get of it.
func (e *Engine) prepare(ctx context.Context, job Job, alone bool) (document []byte, warnings []string, err error) {
	if job.Fault != nil {
		return nil, nil, job.Fault
	}
	p, err := e.started.Job(ctx, job.Config, alone)
	if err != nil {
		return nil, nil, err
	}
	if err := p.CheckJob(ctx); err != nil {
		return nil, nil, err
	}
	document, err = configs.Document(configs.Planned{Config: job.Config, Contents: p.Contents})
	return document, p.JobWarnings(ctx), err
}

// errStopped is why no order follows once a rank was asked to stop. Rank 0 may not have been asked yet.
var errStopped = errors.New("stopped")

// collect takes the answers of a rank. It calls last where no order is to follow.
func (e *Engine) collect(ctx context.Context, c *pool, rank int, last context.CancelCauseFunc) {
	for {
		var a desk.Answer
		if err := c.desks[rank].Recv(ctx, &a); err != nil {
			return
		}
		switch {
		case a.Stop:
			last(errStopped)
		case a.Number == 0:
			c.add(rank, -ahead)
		default:
			by, ok := e.answered(rank, a)
			if !ok {
				last(nil)
			}
			c.add(by, -1)
		}
	}
}

// answered takes the answer of a rank, and returns who has done its job. ok is false if no job is to follow.
func (e *Engine) answered(rank int, a desk.Answer) (by int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.open, func(j *ordered) bool {
		return j.number == a.Number && (j.rank == rank || j.rank == everyone && rank == 0)
	})
	if i < 0 || e.open[i].result != nil {
		return rank, false
	}
	r := &Result{Refused: a.Refused, Failed: a.Failed}
	if a.Report != nil {
		r.Report = new(output.Report)
		if err := json.Unmarshal(a.Report, r.Report); err != nil {
			r = &Result{Failed: fmt.Sprintf("report of the run: %v", err)}
		}
	}
	e.open[i].end(r)
	by = e.open[i].rank
	return by, e.passFirst()
}
