package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/events"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/study"
)

const aboutServe = `serve solves problems for another program, on ranks that start once. It reads
requests from standard input, a JSON object on each line:

  {"id": 1, "keys": {"grid.nx": 129, "grid.ny": 129, "problem.top": 1}}
  {"cancel": 1}

and writes events to standard output, as --json does. Each event has the id of
its request. The event end is the last one of a request: its exit_code is that
of a run alone, and its error says why a run was refused, cancelled or failed.
Requests are done in their order, and each has the bits of a run alone. With
"hash": true, the report has the SHA-256 of the field; with "progress": true,
events tell how far the run is.

Files are written to output.dir, and only those that a request names, as in
"output.field": "field.npy". Files that a request reads are in the directory in
which serve was started. Keys of the start (run, device, halo, nats, output.dir)
are those of the command. At the end of standard input, serve does what was
requested and ends.

Exit codes: 0 every request has an end; 1 refused or failed; 130 and 143 ended
by SIGINT and SIGTERM.`

func newServeCommand(stdout, stderr io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "serve [-np N] [--config FILE] [--set key=value]...",
		Short:   "Solve problems for a program, on ranks that start once",
		Long:    aboutServe,
		Example: `  echo '{"id": 1, "keys": {"problem.top": 1}}' | launcher serve -np 2`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.config == configs.StandardInput {
				return errors.New("--config -: standard input is for requests")
			}
			return startServe(cmd.Context(), o, os.Stdin, stdout, stderr)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.restarts, "max-restarts", 0, "start the ranks again up to `N` times when a rank or a host dies, from "+
		"the next request")
	o.define(f)
	return cmd
}

// Limits of what a client may send.
const (
	maxRequest = 1 << 20 // bytes of a line
	maxQueue   = 64      // requests that wait; the client waits with more
	maxID      = 200     // bytes
)

// startServe starts the ranks and does the requests of in.
func startServe(ctx context.Context, o options, in io.Reader, stdout, stderr io.Writer) error {
	base, err := o.base()
	if err != nil {
		return err
	}
	start, err := study.StartConfig(base.Config())
	if err != nil {
		return err
	}
	if err := errors.Join(output.CheckDir(start.Output.Dir), dirlock.Check(start.Output.Dir)); err != nil {
		return err
	}
	scr := newScreen(stdout, stderr, o.look(start)).onStderr()
	w, err := o.stayers(ctx, start, scr)
	if err != nil {
		return err
	}
	s := &serving{base: base, out: json.NewEncoder(stdout), queue: make(chan request, maxQueue),
		waiting: map[string]int{}, given: map[string]int{}, ended: map[string]bool{}}
	e := &study.Engine{Start: start, Where: o.where, Restarts: o.restarts, Next: s.give, Done: s.done, Event: s.event,
		Options: attempt.Options{Starter: w, Limit: o.timeout.Limit, Screen: scr, Stdout: scr.data}}
	s.cancel = e.Cancel
	go s.read(ctx, in)
	end, err := e.Run(ctx)
	switch {
	case err != nil:
		return err
	case e.Complete() && end.Err == nil:
		return nil
	case end.Err != nil:
		scr.fail(end.Err.Error())
	}
	if code := end.ExitCode(); code != launch.ExitOK {
		return launch.ExitError{Code: code}
	}
	return launch.ExitError{Code: launch.ExitFailed}
}

// request is a line of the client.
type request struct {
	ID       json.RawMessage `json:"id"`
	Keys     json.RawMessage `json:"keys"`
	Hash     bool            `json:"hash"`
	Progress bool            `json:"progress"`
	Cancel   json.RawMessage `json:"cancel"` // the id of a request that is not to be done, or not to its end
	fault    error
}

// answer is a line for the client.
type answer struct {
	ID json.RawMessage `json:"id"`
	events.Event
}

// serving does the requests of one client.
type serving struct {
	base   *configs.Base
	out    *json.Encoder
	queue  chan request
	number int
	cancel func(ctx context.Context, job int) error // a job that ranks have

	mu      sync.Mutex
	waiting map[string]int  // requests without an end, by id
	given   map[string]int  // the newest job, by id
	ended   map[string]bool // ids of requests that were cancelled
}

// read reads requests until their end. A line that is none is answered in its turn.
func (s *serving) read(ctx context.Context, in io.Reader) {
	defer close(s.queue)
	lines := bufio.NewReaderSize(in, maxRequest)
	for {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		switch {
		case long:
			s.queue <- request{fault: fmt.Errorf("no request: more than %d bytes", maxRequest)}
		case len(bytes.TrimSpace(line)) > 0:
			r := parseRequest(line)
			if r.Cancel != nil && r.fault == nil {
				s.abandon(ctx, string(r.Cancel))
				continue
			}
			s.mu.Lock()
			s.waiting[string(r.ID)]++
			s.mu.Unlock()
			s.queue <- r
		}
		if err != nil {
			return
		}
	}
}

// parseRequest reads a line. Its fault says why it is no request.
func parseRequest(line []byte) (r request) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	switch id := string(r.ID); {
	case err != nil:
		r.ID, r.fault = nil, fmt.Errorf("no request: %w", err)
	case r.Cancel != nil && r.ID == nil && r.Keys == nil:
	case id == "" || len(id) > maxID || strings.ContainsAny(id[:1], "{[ntf"):
		r.ID, r.fault = nil, fmt.Errorf("no request: id: must be a number, or text of at most %d bytes", maxID)
	case len(r.Keys) == 0:
		r.fault = errors.New("no request: keys: must be an object")
	}
	return r
}

// give returns the next request as a job.
func (s *serving) give(ctx context.Context) (study.Job, bool, error) {
	select {
	case r, ok := <-s.queue:
		if !ok {
			return study.Job{}, false, nil
		}
		s.number++
		job, err := s.job(r)
		id := string(r.ID)
		s.mu.Lock()
		s.given[id] = s.number
		if s.ended[id] {
			err = errors.New("the request was cancelled")
		}
		s.mu.Unlock()
		job.ID, job.Fault, job.Tag = s.number, err, r.ID
		return job, true, nil
	case <-ctx.Done():
		return study.Job{}, false, context.Cause(ctx)
	}
}

func (s *serving) job(r request) (job study.Job, err error) {
	if r.fault != nil {
		return job, r.fault
	}
	keys, err := study.ParseKeys(r.Keys)
	if err != nil {
		return job, err
	}
	if err := checkPaths(keys); err != nil {
		return job, err
	}
	job.Hash, job.Progress = r.Hash, r.Progress
	if job.Config, err = s.base.With(keys, "request"); err == nil {
		err = study.Check(job.Config)
	}
	return job, err
}

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

// abandon cancels the requests of that id that have no end. One at which the ranks are stops after a common iteration.
func (s *serving) abandon(ctx context.Context, id string) {
	s.mu.Lock()
	if s.waiting[id] == 0 {
		s.mu.Unlock()
		return
	}
	s.ended[id] = true
	job := s.given[id]
	s.mu.Unlock()
	_ = s.cancel(ctx, job) // fails only when the ranks end anyway
}

// event passes the progress of a request on.
func (s *serving) event(j study.Job, e roster.Event) {
	if e.Kind == roster.Progress {
		_ = s.tell(j, events.Event{Event: "progress", Progress: events.ProgressOf(e)}) // done finds a client that left
	}
}

// done answers a request.
func (s *serving) done(j study.Job, r study.Result) error {
	end := events.End{ExitCode: launch.ExitFailed, Error: r.Refused + r.Failed}
	if rep := r.Report; rep != nil {
		e, err := reportEvent(*rep)
		if err != nil {
			return err
		}
		if err := s.tell(j, e); err != nil {
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
	id := string(j.Tag)
	s.mu.Lock()
	if s.waiting[id]--; s.waiting[id] <= 0 {
		delete(s.waiting, id)
		delete(s.given, id)
		delete(s.ended, id)
	}
	s.mu.Unlock()
	return s.tell(j, events.Event{Event: "end", End: &end})
}

func (s *serving) tell(j study.Job, e events.Event) error {
	e.Time = time.Now()
	id := j.Tag
	if id == nil {
		id = json.RawMessage("null")
	}
	if err := s.out.Encode(answer{id, e}); err != nil {
		return fmt.Errorf("answer to a request: %w", err)
	}
	return nil
}
