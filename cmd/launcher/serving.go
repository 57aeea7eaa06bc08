package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/events"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/study"
)

// serving does the requests of clients, in the order in which they come.
type serving struct {
	base  *configs.Base
	queue chan request

	mu      sync.Mutex
	number  int             // of the last job
	pending map[int]request // by job, those without an end
}

var errCancelled = errors.New("the request was cancelled")

// give returns the next request as a job.
func (s *serving) give(ctx context.Context) (study.Job, bool, error) {
	select {
	case r, ok := <-s.queue:
		if !ok {
			return study.Job{}, false, nil
		}
		job, err := s.job(r)
		job.Wanted, r.drop = context.WithCancelCause(context.WithoutCancel(ctx))
		s.mu.Lock()
		s.number++
		job.ID, job.Tag = s.number, r.ID
		s.pending[job.ID] = r
		s.mu.Unlock()
		if !r.from.give(string(r.ID), r.drop) {
			r.drop(errCancelled)
		}
		job.Fault = err
		return job, true, nil
	case <-ctx.Done():
		return study.Job{}, false, context.Cause(ctx)
	}
}

func (s *serving) job(r request) (job study.Job, err error) {
	if r.fault != nil {
		return job, r.fault
	}
	tree, err := configs.DecodeLine(r.Keys)
	if err != nil {
		return job, err
	}
	keys, err := study.KeysOf(tree)
	if err != nil {
		return job, err
	}
	if err := checkPaths(keys); err != nil {
		return job, err
	}
	job.Hash, job.Progress = r.Hash, r.Progress
	job.Config, err = s.base.With(keys, "request", noFile)
	return job, err
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

// owner returns the client of a job.
func (s *serving) owner(job int) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[job].from
}

// event passes the progress of a request on.
func (s *serving) event(j study.Job, e roster.Event) {
	if c := s.owner(j.ID); c != nil && e.Kind == roster.Progress {
		told := events.Event{Event: "progress", Progress: events.ProgressOf(e)}
		_ = c.tell(j.Tag, told) // done finds a client that left
	}
}

// warn passes a warning about a request on.
func (s *serving) warn(j study.Job, text string) {
	if c := s.owner(j.ID); c != nil {
		_ = c.tell(j.Tag, events.Event{Event: "message", Message: &events.Message{Level: "warn", Text: text}})
	}
}

// done answers a request. An error ends all.
func (s *serving) done(j study.Job, r study.Result) error {
	c := s.owner(j.ID)
	s.mu.Lock()
	s.pending[j.ID].drop(nil)
	delete(s.pending, j.ID)
	s.mu.Unlock()
	end := events.End{ExitCode: launch.ExitFailed, Error: r.Refused + r.Failed}
	if rep := r.Report; rep != nil {
		e, err := reportEvent(*rep)
		if err != nil {
			return err
		}
		if err := c.tell(j.Tag, e); err != nil {
			return err
		}
		end.ExitCode, end.Verdict = launch.ExitOK, string(rep.Verdict)
		switch {
		case rep.Fault() != nil:
			end.ExitCode, end.Error = launch.ExitFailed, rep.Fault().Error()
		case rep.Verdict == configs.Missed:
			end.ExitCode = launch.ExitMissed
		case rep.Verdict == configs.Interrupted:
			end.ExitCode = launch.ExitSignal + 2
		}
	}
	c.end(string(j.Tag))
	return c.tell(j.Tag, events.Event{Event: "end", End: &end})
}

// notDone is the verdict of a request that the ranks, which have ended, did not come to.
const notDone = "not_done"

// dismiss ends the requests that wait, in the order in which they came. code is the exit code of the launcher.
func (s *serving) dismiss(code int, why string) {
	s.mu.Lock()
	var waiting []request
	for _, job := range slices.Sorted(maps.Keys(s.pending)) {
		waiting = append(waiting, s.pending[job])
	}
	s.mu.Unlock()
	for range len(s.queue) {
		if r, ok := <-s.queue; ok {
			waiting = append(waiting, r)
		}
	}
	for _, r := range waiting {
		end := events.End{ExitCode: code, Verdict: notDone, Error: why}
		_ = r.from.tell(r.ID, events.Event{Event: "end", End: &end}) // the launcher ends with code all the same
	}
}
