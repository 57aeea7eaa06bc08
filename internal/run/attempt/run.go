// Package attempt carries out a plan: it starts the ranks, watches them, and collects what they left. After a failure
// it decides whether and from where the run starts again.
package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"jacobi/configs"
	"jacobi/internal/base/logging"
	"jacobi/internal/base/regular"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

const (
	failGrace = 3 * time.Second
	endGrace  = 10 * time.Second
	killGrace = 10 * time.Second
	stopGrace = 30 * time.Second
	// startLimits is the time in which rank 0 has to connect and to meet the others, in units of halo.timeout.
	startLimits = 4
)

// Options say how an attempt starts its ranks and what it shows.
type Options struct {
	Starter
	Limit  Limit
	Watch  Watch // nil if nobody else watches
	Task   configs.Task
	Screen Screen
	Stdout io.Writer // receives the file that a run writes to standard output
	// Show is called right before the ranks start. event, which may be nil, gets what they tell; done, which may be
	// nil, is called once they have ended.
	Show func() (event func(roster.Event), done func())
}

// Watch is called before the ranks of p start, with the connection of the run. stop is called after they have ended.
type Watch func(ctx context.Context, p *plan.Plan, conn *wire.Conn, runID string) (stop func(), err error)

// Starter holds what the start of ranks needs.
type Starter struct {
	SSH  launch.SSH // reaches other machines
	Vars []string   // environment of the ranks on all machines
}

// Limit bounds the time of a run.
type Limit struct {
	Left time.Duration // 0: no limit
	Text string        // the whole limit, as the user wrote it
}

// After returns the limit once some of its time has passed.
func (l Limit) After(passed time.Duration) Limit {
	if l.Left > 0 {
		l.Left = max(l.Left-passed, time.Millisecond)
	}
	return l
}

// Screen shows lines. It receives the launcher's log, too.
type Screen interface {
	zapcore.WriteSyncer
	Say(text string)    // a line of the launcher
	Notice(text string) // the same, but once only, although each run of a command may repeat it
	// Restart shows the failure after which a run starts again, and from where.
	Restart(failure, text string)
	RankLine(rank int, from launch.Stream, line []byte)
}

// Run starts the ranks of p and watches them until all have ended. An error means that they could not be started.
func Run(ctx context.Context, p *plan.Plan, o Options) (end Ended, err error) {
	log, err := logging.New(o.Screen, p.Config.Log.Level, p.Config.Log.Format, -1)
	if err != nil {
		return end, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return end, fmt.Errorf("working directory: %w", err)
	}
	reached, err := hosts.Reach(ctx, p.Places, p.Means(o.SSH, o.Screen.Notice))
	if err != nil {
		return end, err
	}
	defer reached.Close() // job.Run has closed the hosts already if it was reached
	runID := launch.NewRunID()
	dirs, err := hold(p.Config, runID, o)
	if err != nil {
		return end, err
	}
	defer dirs.close(ctx) // does nothing after the call below
	link, err := reached.Connect(ctx, p.Config.NATS, runID, log)
	if err != nil {
		return end, err
	}
	defer link.Close()
	events, unwatch, err := watchEvents(ctx, link.Conn, runID)
	if err != nil {
		return end, err
	}
	defer unwatch()
	if o.Watch != nil {
		stop, err := o.Watch(ctx, p, link.Conn, runID)
		if err != nil {
			return end, err
		}
		defer stop()
	}
	if dirs.out != nil { // for the ranks to write files there over NATS
		if dirs.stop, err = farfiles.Serve(link.Conn, runID, dirs.out); err != nil {
			return end, err
		}
	}
	if err := link.Permitted(ctx); err != nil {
		return end, err
	}
	signals, stop := launch.NotifySignals()
	defer stop()

	log.Debug("start", zap.String("run", runID), zap.String("nats", link.Conn.Server()))
	silent := make(chan *roster.SilentError, 1)
	unattend, err := roster.Attend(ctx, link.Conn, runID, p.Config.Run.Liveness, startLimits*p.Config.Halo.Timeout,
		func(rank int) string { return p.Placements[rank].Host }, func(e *roster.SilentError) { silent <- e })
	if err != nil {
		return end, err
	}
	defer unattend()
	env, err := hostEnv(configs.Start{Planned: p.Planned(), Task: o.Task}, link.Access, o.Vars)
	if err != nil {
		return end, err
	}
	event, done := o.Show()
	job := launch.Job{
		Dir:     dir,
		HostEnv: env,
		RunID:   runID,
		Ranks:   p.Placements,
		Hosts:   reached.ByName,
		Output:  o.Screen.RankLine,
		Say:     o.Screen.Say,
		Events:  events,
		OnEvent: event,
		Silent:  silent,
		Abort: func(ctx context.Context, why roster.AbortError) error {
			return roster.AbortAll(ctx, link.Conn, runID, why)
		},
		Signals:   signals,
		StopSelf:  launch.StopSelf,
		Timeout:   o.Limit.Left,
		Limit:     o.Limit.Text,
		StopGrace: stopGrace + p.WritingTime(),
		FailGrace: failGrace,
		EndGrace:  endGrace,
		KillGrace: killGrace,
	}
	out, err := job.Run(ctx)
	if done != nil {
		done()
	}
	if err != nil {
		return end, err
	}
	end = dirs.end(p.Config.Output, out, runID, o.Stdout)
	if err := dirs.close(ctx); err != nil {
		o.Screen.Say(err.Error())
	}
	return end, nil
}

// hostEnv returns the environment of the ranks on each host, which has a server's access of its own.
func hostEnv(s configs.Start, access map[string]configs.NATS, vars []string) (map[string][]string, error) {
	env := map[string][]string{}
	for name, server := range access {
		s.NATS = server
		job, err := s.Variable()
		if err != nil {
			return nil, err
		}
		env[name] = append(slices.Clone(vars), job)
	}
	return env, nil
}

// watchEvents returns a channel of the events that ranks publish, until stop is called.
func watchEvents(ctx context.Context, conn *wire.Conn, runID string) (_ <-chan roster.Event, stop func(), err error) {
	events, done := make(chan roster.Event, 64), make(chan struct{})
	unwatch, err := roster.WatchEvents(ctx, conn, runID, func(e roster.Event) {
		select {
		case events <- e:
		case <-done:
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return events, func() { close(done); unwatch() }, nil
}

// Ended describes a run that has ended.
type Ended struct {
	launch.Outcome
	RunID string
	Files []string // files that are in place
	Fault error    // why Files is unknown, or why files are not where they belong
}

// end collects what the run left in output.dir. It is called after the ranks have ended, so the files do not change.
func (h *holdings) end(o configs.Output, out launch.Outcome, runID string, stdout io.Writer) Ended {
	e := Ended{Outcome: out, RunID: runID}
	if h.out == nil {
		return e
	}
	e.Fault = h.within(func() error { h.stop(); return nil })
	if e.Fault != nil {
		*h = holdings{} // the locks end with this process
		return e
	}
	h.stop = nil
	if e.Files, e.Fault = h.out.Committed(); e.Fault == nil && o.ToStdout() {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // a slow reader may block the copy; Ctrl-C must end it
		e.Fault = h.out.CopyTo(stdout)
	}
	return e
}

// Left describes the contents of output.dir after a run that failed.
func (e Ended) Left(o configs.Output) string {
	if len(e.Files) == 0 && e.Fault != nil {
		return fmt.Sprintf("output.dir %q: %v", o.Dir, e.Fault)
	}
	if len(e.Files) == 0 {
		return "outputs of earlier runs are as they were"
	}
	paths := make([]string, len(e.Files))
	for i, name := range e.Files {
		paths[i] = filepath.Join(o.Dir, name)
	}
	return "the outputs of this run are in place: " + strings.Join(paths, ", ")
}

// maxReport is far larger than the report of the largest run, in bytes.
const maxReport = 256 << 20

// ReadReport decodes the report that a rank sent or, if that was lost, reads its file.
func (e Ended) ReadReport(o configs.Output) (output.Report, error) {
	var r output.Report
	sent := e.Report
	if sent == nil {
		if o.Report == "" || o.Report == configs.Stdout {
			return r, errors.New("it was not sent, and output.report names no file")
		}
		var err error
		if sent, err = regular.ReadFile(filepath.Join(o.Dir, o.Report), maxReport); err != nil {
			return r, err
		}
	}
	if err := json.Unmarshal(sent, &r); err != nil {
		return r, err
	}
	if r.RunID != e.RunID {
		return r, fmt.Errorf("it was not sent, and %s is of run %s", filepath.Join(o.Dir, o.Report), r.RunID)
	}
	return r, nil
}
