package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/show"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/events"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/study"
)

// Limits of what a client may send.
const (
	maxRequest = 1 << 20 // bytes of a line
	maxOpen    = 64      // requests without an end, for each rank; the client waits with more
	maxID      = 200     // bytes
	maxClients = 64      // of a socket, at once
)

// lastAnswers is how long clients may take to read the last answers once the ranks have ended.
const lastAnswers = 5 * time.Second

// serving does the requests of clients, one of each in turn.
type serving struct {
	base *configs.Base
	room int            // requests of a client without an end
	all  sync.WaitGroup // of the clients
	more chan struct{}  // holds a token for give
	over chan struct{}  // closed after the last answer

	mu     sync.Mutex
	turn   []*client        // those with requests that wait, the next one first
	open   map[int]*request // that have no end, by job
	number int              // of the last job
	closed bool             // no request is taken any more
	lost   error            // why the only client has gone before all was answered
}

var errCancelled = errors.New("the request was cancelled")

// newServing returns what does requests on ranks.
func newServing(base *configs.Base, ranks int) *serving {
	return &serving{base: base, room: maxOpen * ranks, more: make(chan struct{}, 1),
		over: make(chan struct{}), open: map[int]*request{}}
}

// enqueue adds a request to those of its client that wait. The caller has s.mu.
func (s *serving) enqueue(r *request) {
	if c := r.from; len(c.waiting) == 0 {
		s.turn = append(s.turn, c)
	}
	r.from.waiting = append(r.from.waiting, r)
	notify(s.more)
}

// next returns the next request that waits, and nil if there is none.
func (s *serving) next() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turn) == 0 {
		return nil
	}
	c := s.turn[0]
	r := c.waiting[0]
	s.turn, c.waiting = s.turn[1:], c.waiting[1:]
	if len(c.waiting) > 0 {
		s.turn = append(s.turn, c)
	}
	return r
}

// close says that no request follows, and why the only client has gone; nil if it has all answers.
func (s *serving) close(lost error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.lost = true, cmp.Or(s.lost, lost)
	notify(s.more)
}

// give returns the next request as a job.
func (s *serving) give(ctx context.Context) (study.Job, bool, error) {
	for {
		s.mu.Lock()
		closed := s.closed // before the last look at what waits
		s.mu.Unlock()
		if r := s.next(); r != nil {
			return s.job(r), true, nil
		}
		if closed {
			return study.Job{}, false, nil
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			return study.Job{}, false, context.Cause(ctx)
		}
	}
}

// job returns the job of a request. One that cannot be done has a fault.
func (s *serving) job(r *request) study.Job {
	job := study.Job{Wanted: r.wanted, Hash: r.hash, Progress: r.progress, Fault: r.fault}
	if job.Fault == nil {
		job.Fault = context.Cause(r.wanted)
	}
	if job.Fault == nil {
		job.Config, job.Fault = s.config(r.keys)
	}
	job.ID = s.begin(r)
	return job
}

// begin returns the number of the job of a request.
func (s *serving) begin(r *request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	s.open[s.number] = r
	return s.number
}

func (s *serving) config(tree map[string]any) (c configs.Config, err error) {
	keys, err := study.KeysOf(tree)
	if err == nil {
		err = checkPaths(keys)
	}
	if err != nil {
		return c, err
	}
	return s.base.With(keys, "request", noFile)
}

// noFile says that keys come from no file.
func noFile(string) string { return "" }

// checkPaths refuses files of a problem that are not in the directory in which this process was started.
func checkPaths(keys study.Keys) error {
	here, err := filepath.EvalSymlinks(".")
	if err == nil {
		here, err = filepath.Abs(here)
	}
	if err != nil {
		return err
	}
	for name, value := range keys {
		path, isText := value.(string)
		if !isText || !slices.Contains([]string{".npy", ".png"}, strings.ToLower(filepath.Ext(path))) {
			continue
		}
		inside := filepath.IsLocal(path)
		if real, err := filepath.EvalSymlinks(path); inside && err == nil {
			real, err = filepath.Abs(real)
			inside = err == nil && strings.HasPrefix(real, here+string(filepath.Separator))
		}
		if !inside {
			return fmt.Errorf("%s %q: a request may name files of the directory in which serve was started", name, path)
		}
	}
	return nil
}

// asked returns the request of a job.
func (s *serving) asked(job int) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[job]
}

// event passes the progress of a request on.
func (s *serving) event(j study.Job, e roster.Event) {
	if e.Kind == roster.Progress {
		s.tell(j, events.Event{Event: "progress", Progress: events.ProgressOf(e)})
	}
}

// warn passes a warning about a request on.
func (s *serving) warn(j study.Job, text string) {
	s.tell(j, events.Event{Event: "message", Message: &events.Message{Level: "warn", Text: text}})
}

func (s *serving) tell(j study.Job, e events.Event) {
	if r := s.asked(j.ID); r != nil {
		r.from.tell(r, e)
	}
}

// done answers a request.
func (s *serving) done(j study.Job, r study.Result) error {
	end := events.End{ExitCode: launch.ExitFailed, Error: show.Values(r.Refused + r.Failed)}
	if rep := r.Report; rep != nil {
		e, err := reportEvent(*rep)
		switch {
		case err != nil:
			end.Error = fmt.Sprintf("report of the run: %v", err)
		case rep.Fault() != nil:
			end.Error = rep.Fault().Error()
		case rep.Verdict == configs.Missed:
			end.ExitCode = launch.ExitMissed
		case rep.Verdict == configs.Interrupted:
			end.ExitCode = launch.ExitSignal + 2
		default:
			end.ExitCode = launch.ExitOK
		}
		if err == nil {
			end.Verdict = string(rep.Verdict)
			s.tell(j, e)
		}
	}
	s.end(j.ID, end)
	return nil
}

// end tells the end of a request.
func (s *serving) end(job int, end events.End) {
	s.mu.Lock()
	r := s.open[job]
	delete(s.open, job)
	s.mu.Unlock()
	r.drop(nil)
	r.from.tell(r, events.Event{Event: "end", End: &end})
}

// notDone is the verdict of a request that the ranks, which have ended, did not come to.
const notDone = "not_done"

// dismiss ends the requests that have no end, in their order, and gives clients a while to read the last answers. code
// is the exit code of the launcher. It returns why the only client has gone before all was answered.
func (s *serving) dismiss(ctx context.Context, code int, why string) (lost error) {
	s.close(nil)
	for r := s.next(); r != nil; r = s.next() {
		s.begin(r)
	}
	s.mu.Lock()
	jobs := slices.Sorted(maps.Keys(s.open))
	s.mu.Unlock()
	for _, job := range jobs {
		s.end(job, events.End{ExitCode: code, Verdict: notDone, Error: why})
	}
	close(s.over)
	ctx, cancel := awake.WithTimeout(ctx, lastAnswers)
	defer cancel()
	go func() {
		s.all.Wait()
		cancel()
	}()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}
