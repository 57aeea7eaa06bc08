package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/launch"
	"jacobi/internal/logging"
	"jacobi/internal/output"
	"jacobi/internal/regular"
	"jacobi/internal/roster"
	"jacobi/internal/wire"
)

const (
	failGrace = 3 * time.Second
	stopGrace = 30 * time.Second
	// maxReport is far larger than the report of the largest run, in bytes.
	maxReport = 256 << 20
)

// starter holds the flags that the start of ranks needs.
type starter struct {
	ssh  launch.SSH // reaches other machines
	vars []string   // environment of the ranks on all machines
}

// solve runs the ranks, restarts them as often as r allows, and prints the summary.
func solve(ctx context.Context, p *plan, w starter, r *restarts, scr *screen) error {
	for {
		end, err := runRanks(ctx, p, w, r.timeLeft(), scr, func() progress {
			scr.say(p.String())
			scr.say(p.writes())
			switch text, warning := p.expects(ctx); {
			case warning != "":
				scr.warn(warning)
			case text != "":
				scr.say(text)
			}
			return newProgress(scr, p.cfg.Solver.MaxIterations)
		})
		if err != nil {
			return err
		}
		next := r.next(ctx, p, end.Outcome, scr.say)
		if next == nil {
			err := conclude(end, p.cfg.Output, scr)
			if end.Err != nil || end.Stopped() {
				r.hint(ctx, scr.say)
			}
			return err
		}
		p = next
	}
}

// runRanks starts the ranks and watches them until all have ended. It calls show right before they start.
func runRanks(ctx context.Context, p *plan, w starter, limit timeLimit, scr *screen,
	show func() progress) (end ended, err error) {
	log, err := logging.NewTo(scr, p.cfg.Log, -1)
	if err != nil {
		return end, err
	}
	h, err := reach(ctx, p, w.ssh, scr.notice)
	if err != nil {
		return end, err
	}
	defer h.close() // job.Run has closed the hosts already if it was reached
	runID := launch.NewRunID()
	dirs, err := p.hold(runID, scr.say)
	if err != nil {
		return end, err
	}
	defer dirs.close(ctx) // does nothing after the call below
	conn, servers, closeNATS, err := connect(ctx, p.cfg.NATS, h, runID, log)
	if err != nil {
		return end, err
	}
	defer closeNATS()
	dir, err := os.Getwd()
	if err != nil {
		return end, fmt.Errorf("working directory: %w", err)
	}
	events, unwatch, err := watchEvents(ctx, conn, runID)
	if err != nil {
		return end, err
	}
	defer unwatch()
	if err := dirs.serve(conn, runID, p.cfg.Output.Names(), log); err != nil {
		return end, err
	}
	if err := permitted(ctx, conn); err != nil {
		return end, err
	}
	signals, stop := notifySignals()
	defer stop()

	log.Debug("start", zap.String("run", runID), zap.String("nats", conn.Server()))
	prog := show()
	job := launch.Job{
		Dir:     dir,
		HostEnv: hostEnv(p.cfg, servers, w.vars),
		RunID:   runID,
		Ranks:   p.ranks,
		Hosts:   h.byName,
		Output:  scr.rankLine,
		Say:     scr.say,
		Events:  events,
		OnEvent: prog.event,
		Abort: func(ctx context.Context, why roster.AbortError) error {
			return roster.AbortAll(ctx, conn, runID, why)
		},
		Signals:   signals,
		StopSelf:  stopSelf,
		Timeout:   limit.left,
		Limit:     limit.text,
		StopGrace: stopGrace + p.writing(),
		FailGrace: failGrace,
	}
	out, err := job.Run(ctx)
	prog.close()
	if err != nil {
		return end, err
	}
	end = dirs.end(p, out, runID, scr.data)
	if err := dirs.close(ctx); err != nil {
		scr.say(err.Error())
	}
	return end, nil
}

// hostEnv returns the environment of the ranks on each host: vars and cfg with the host's access to the server.
func hostEnv(cfg configs.Config, servers map[string]configs.NATS, vars []string) map[string][]string {
	env := map[string][]string{}
	for name, server := range servers {
		cfg.NATS = server
		env[name] = append(slices.Clone(vars), configs.Environ(cfg)...)
	}
	return env
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

// conclude prints how the run ended, and returns its exit code as an error.
func conclude(e ended, o configs.Output, scr *screen) error {
	if e.Err != nil {
		scr.fail(e.Err.Error())
		if len(e.files) > 0 {
			scr.fail(e.left(o))
		}
		return exitError{e.ExitCode()}
	}
	if e.Killed() {
		scr.fail("the ranks were killed; " + e.left(o))
		return exitError{e.ExitCode()}
	}
	report, err := readReport(e.Report, o, e.runID)
	if err != nil {
		scr.fail("the run ended well, but its report is lost: " + err.Error())
		return exitError{launch.ExitFailed}
	}
	if err := scr.sumUp(report); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	if err := errors.Join(report.Fault(), e.fault); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			scr.fail(line)
		}
		return exitError{launch.ExitFailed}
	}
	if code := e.ExitCode(); code != launch.ExitOK {
		return exitError{code}
	}
	return nil
}

// readReport decodes the report that a rank sent or, if that was lost, reads its file.
func readReport(sent json.RawMessage, o configs.Output, runID string) (output.Report, error) {
	var r output.Report
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
	if r.RunID != runID {
		return r, fmt.Errorf("it was not sent, and %s is of run %s", filepath.Join(o.Dir, o.Report), r.RunID)
	}
	return r, nil
}
