package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/farfiles"
	"jacobi/internal/launch"
	"jacobi/internal/logging"
	"jacobi/internal/output"
	"jacobi/internal/regular"
	"jacobi/internal/roster"
)

const (
	failGrace = 3 * time.Second
	stopGrace = 30 * time.Second
	// maxReport is far above the report of the most ranks, in bytes.
	maxReport = 256 << 20
)

// way is how ranks come to run: what reaches other machines, and the variables that ranks get there too.
type way struct {
	ssh  launch.SSH
	vars []string
}

// solve starts the ranks, watches them to their end, starts them again as often as r allows, and sums the run up.
func solve(ctx context.Context, p *plan, w way, r *restarts, scr *screen) error {
	for {
		out, runID, err := runRanks(ctx, p, w, r.timeLeft(), scr, func() progress {
			scr.say(p.String())
			scr.say(p.writes())
			return newProgress(scr, p.cfg.Solver.MaxIterations)
		})
		if err != nil {
			return err
		}
		next := r.next(ctx, p, out, scr.say)
		if next == nil {
			err := conclude(out, p.cfg.Output, runID, scr)
			if out.Err != nil {
				r.hint(ctx, scr.say)
			}
			return err
		}
		p = next
	}
}

// runRanks starts the ranks and watches them to their end. show is called once they are about to start.
func runRanks(ctx context.Context, p *plan, w way, limit timeLimit, scr *screen,
	show func() progress) (out launch.Outcome, runID string, err error) {
	log, err := logging.NewTo(scr, p.cfg.Log, -1)
	if err != nil {
		return out, "", err
	}
	h, err := reach(ctx, p, w.ssh, scr.say)
	if err != nil {
		return out, "", err
	}
	defer h.close() // again, where the job came to its end
	runID = launch.NewRunID()
	conn, servers, closeNATS, err := connect(ctx, p.cfg.NATS, h, runID, log)
	if err != nil {
		return out, "", err
	}
	defer closeNATS()
	env := map[string][]string{}
	for name, server := range servers {
		cfg := p.cfg
		cfg.NATS = server
		env[name] = append(slices.Clone(w.vars), configs.Environ(cfg)...)
	}
	dir, err := os.Getwd()
	if err != nil {
		return out, "", fmt.Errorf("working directory: %w", err)
	}

	events, done := make(chan roster.Event, 64), make(chan struct{})
	unwatch, err := roster.WatchEvents(ctx, conn, runID, func(e roster.Event) {
		select {
		case events <- e:
		case <-done:
		}
	})
	if err != nil {
		return out, "", err
	}
	defer unwatch()
	defer close(done)

	if names := p.cfg.Output.Names(); len(names) > 0 {
		stop, err := farfiles.Serve(farfiles.Options{Conn: conn, RunID: runID, Dir: p.cfg.Output.Dir, Names: names, Log: log})
		if err != nil {
			return out, "", err
		}
		defer stop()
	}

	signals, stop := notifySignals()
	defer stop()

	log.Debug("start", zap.String("run", runID), zap.String("nats", conn.Server()))
	prog := show()
	job := launch.Job{
		Dir:     dir,
		HostEnv: env,
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
		Timeout:   limit.left,
		Limit:     limit.text,
		StopGrace: stopGrace + p.writing(),
		FailGrace: failGrace,
	}
	out, err = job.Run(ctx)
	prog.close()
	if err != nil {
		return out, "", err
	}
	if err := errors.Join(output.RemovePartials(p.cfg.Output.Dir, runID), p.removeUnsealed(ctx)); err != nil {
		scr.say(err.Error())
	}
	return out, runID, nil
}

// conclude says how the run ended.
func conclude(out launch.Outcome, o configs.Output, runID string, scr *screen) error {
	if out.Err != nil {
		scr.fail(out.Err.Error())
		return exitError{out.ExitCode()}
	}
	if out.Killed() {
		scr.fail("the ranks were killed; outputs of earlier runs are as they were")
		return exitError{out.ExitCode()}
	}
	report, err := readReport(out.Report, o, runID)
	if err != nil {
		scr.fail("the run ended well, but its report is lost: " + err.Error())
		return exitError{launch.ExitFailed}
	}
	if err := output.Summary(scr.stdout, report); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	if code := out.ExitCode(); code != launch.ExitOK {
		return exitError{code}
	}
	return nil
}

// readReport reads the report that a rank sent, or, if that got lost, the one that it wrote.
func readReport(sent json.RawMessage, o configs.Output, runID string) (output.Report, error) {
	var r output.Report
	if sent == nil {
		if o.Report == "" {
			return r, errors.New("it was not sent, and output.report is empty")
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
