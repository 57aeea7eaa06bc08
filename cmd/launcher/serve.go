package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/show"
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

and answers with events, as --json does. Each event has the id of its request.
The event end is the last one of a request: its exit_code is that of a run
alone, and its error says why a run was refused, cancelled or failed. Its id is
free again then. Requests are done in their order, and each has the bits of a
run alone. With "hash": true, the report has the SHA-256 of the field; with
"progress": true, events tell how far the run is.

Files are written to output.dir, and only those that a request names, as in
"output.field": "field.npy". Files that a request reads are in the directory in
which serve was started. Keys of the start (run, device, halo, nats, output.dir)
are those of the command. At the end of standard input, serve does what was
requested and ends. A reader of standard output that goes away cancels all.

Exit codes: 0 every request has an end; 1 refused or failed; 130 and 143 ended
by SIGINT and SIGTERM.`

func newServeCommand(stdout, stderr io.Writer) *cobra.Command {
	var o options
	cmd := o.command(&cobra.Command{
		Use:     "serve [-np N] [--config FILE] [--set key=value]...",
		Short:   "Solve problems for a program, on ranks that start once",
		Long:    aboutServe,
		Example: `  echo '{"id": 1, "keys": {"problem.top": 1}}' | launcher serve -np 2`,
	}, func(ctx context.Context) error { return startServe(ctx, o, os.Stdin, stdout, stderr) })
	f := cmd.Flags()
	f.IntVar(&o.restarts, "max-restarts", 0, "start the ranks again up to `N` times when a rank or a host dies, from "+
		"the next request")
	o.define(f)
	return cmd
}

// startServe starts the ranks and does the requests of in.
func startServe(ctx context.Context, o options, in io.Reader, stdout, stderr io.Writer) error {
	if o.config == configs.StandardInput {
		return errors.New("--config -: standard input is for requests")
	}
	base, err := o.base()
	if err != nil {
		return err
	}
	start, err := study.StartConfig(base.Config())
	if err != nil {
		return err
	}
	if err := output.CheckFree(start.Output.Dir, true); err != nil {
		return err
	}
	scr := newScreen(stdout, stderr, o.look(start)).onStderr()
	p, w, err := o.stayers(ctx, start, scr)
	if err != nil {
		return err
	}
	s := newServing(ctx, base, start.Run.Ranks)
	s.client.Go(func() { s.close(s.attend(in, stdout, func() { launch.AwaitUnread(unix.Stdout) })) })
	e := &study.Engine{Where: o.where, Restarts: o.restarts, Next: s.give, Done: s.done, Event: s.event,
		Warn: s.warn, Alone: serveAlone,
		Options: attempt.Options{Starter: w, Limit: o.timeout.Limit, Screen: scr, Stdout: scr.data}}
	end, err := e.Run(ctx, p)
	if err != nil {
		s.dismiss(ctx, launch.ExitFailed, err.Error())
		return err
	}
	why := "the ranks have ended"
	if end.Err != nil {
		why += ": " + end.Err.Error()
		scr.fail(end.Err.Error())
	}
	code := end.ExitCode()
	if code == launch.ExitOK && !e.Complete() {
		code = launch.ExitFailed
	}
	if lost := s.dismiss(ctx, code, why); code == launch.ExitOK && lost != nil {
		scr.fail("standard output: " + lost.Error())
		code = launch.ExitFailed
	}
	return exit(code)
}

// Limits of what a client may send.
const (
	maxRequest = 1 << 20 // bytes of a line
	maxOpen    = 64      // requests without an end, for each rank; the client waits with more
	maxID      = 200     // bytes
)

// lastAnswers is how long the client may take to read the last answers once the ranks have ended.
const lastAnswers = 5 * time.Second

// serving does the requests of a client: the program at standard input and output.
type serving struct {
	base   *configs.Base
	ctx    context.Context // ends with the cause when nobody reads the answers any more, and the requests with it
	leave  context.CancelCauseFunc
	client sync.WaitGroup // done once the client is
	room   chan struct{}  // holds an element for each request whose end was not written
	more   chan struct{}  // holds a token for give
	wake   chan struct{}  // holds a token for write
	over   chan struct{}  // closed after the last answer

	mu      sync.Mutex
	waiting []*request          // that no rank has
	open    map[int]*request    // that have no end, by job
	asked   map[string]*request // that have no end, by id
	number  int                 // of the last job
	answers []answer            // to be written
	ended   bool                // all requests were taken
	closed  bool                // no request is taken any more
	lost    error               // why the client has gone before all was answered
}

var errCancelled = errors.New("the request was cancelled")

func newServing(ctx context.Context, base *configs.Base, ranks int) *serving {
	s := &serving{base: base, room: make(chan struct{}, maxOpen*ranks), more: make(chan struct{}, 1),
		wake: make(chan struct{}, 1), over: make(chan struct{}), open: map[int]*request{},
		asked: map[string]*request{}}
	s.ctx, s.leave = context.WithCancelCause(ctx)
	return s
}

// next returns the next request that waits, and nil if there is none.
func (s *serving) next() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil
	}
	r := s.waiting[0]
	s.waiting = s.waiting[1:]
	return r
}

// close says that no request follows, and why the client has gone; nil if it has all answers.
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
	job := study.Job{Wanted: r.wanted, Hash: r.hash, Progress: r.progress,
		Fault: cmp.Or(r.fault, context.Cause(r.wanted))}
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
	return s.base.With(keys, "request", func(string) string { return "" }) // keys of no file
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
		if !isText || !configs.NamesInput(path) {
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
	s.mu.Lock()
	r := s.open[j.ID]
	s.mu.Unlock()
	if r != nil {
		s.answer(r, e)
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
	s.answer(r, events.Event{Event: "end", End: &end})
}

// notDone is the verdict of a request that the ranks, which have ended, did not come to.
const notDone = "not_done"

// dismiss ends the requests that have no end, in their order, and gives the client a while to read the last answers.
// code is the exit code of the launcher. It returns why the client has gone before all was answered.
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
		s.client.Wait()
		cancel()
	}()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}
