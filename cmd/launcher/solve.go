package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"jacobi/configs"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// solve runs the ranks of p, restarts them as often as o allows, and prints the summary. cfg is the configuration of
// the first start. The time limit began at began. m, which may be nil, serves the metrics of the run.
func solve(ctx context.Context, o options, cfg configs.Config, p *plan.Plan, w attempt.Starter, began time.Time,
	scr *screen, m *metrics.Server, page *liveView) error {
	saved := attempt.Saved{Config: cfg}
	r := attempt.Restarts{Where: o.where, Most: o.restarts, Next: saved.Next}
	opts := attempt.Options{Starter: w, Limit: o.timeout.Limit, Screen: scr, Stdout: scr.data,
		Watch: page.watch(), Stats: m != nil || page != nil || scr.events != nil || scr.barred()}
	starts := 0
	end, err := r.Run(ctx, p, opts, began, func(p *plan.Plan) attempt.Progress {
		starts++
		var all several
		if scr.events != nil {
			if e, err := planEvent(p, starts); err == nil { // a configuration always has a JSON form
				scr.events.Write(e)
			}
			all = append(all, eventProgress{scr.events})
		}
		if starts == 1 { // after the plan, which is the first event
			for _, text := range o.warnings(ctx, p) {
				scr.warn(text)
			}
		}
		if m != nil {
			m.Run().Begin(metrics.InfoOf(p.Config, len(p.Ranks)))
			all = append(all, measured{m.Run()})
		}
		return append(all, announce(ctx, p, scr))
	})
	if err != nil {
		page.end(err.Error(), "")
		return err
	}
	switch {
	case end.Err != nil:
		page.end(end.Err.Error(), "")
	case end.Killed():
		page.end("The ranks were killed.", "")
	default:
		page.end("", cfg.Output.Dir)
	}
	err = conclude(end, cfg.Output, scr)
	if page != nil && len(end.Files) > 0 {
		scr.Say(unbroken("launcher view "+shellWord(cfg.Output.Dir)) + " shows this run again")
	}
	page.linger(ctx, scr)
	if end.Err != nil || end.Stopped() {
		if sweep, ok := saved.LastSaved(ctx); ok {
			scr.Say(restartHint(cfg.Solver.Step(), sweep, cfg.Checkpoint.Place(), o.config))
		}
	}
	return err
}

// announce says what a run will do, and returns its progress.
func announce(ctx context.Context, p *plan.Plan, scr *screen) attempt.Progress {
	scr.Say(p.String())
	if p.Idle != "" {
		scr.Say(p.Idle)
	}
	scr.Say(p.Writes())
	if e := p.Expects(ctx); e.Hint != "" {
		scr.Say(e.Hint)
	}
	return newProgress(scr, p.Config.Solver, len(p.Ranks))
}

// conclude prints how the run ended, and returns its exit code as an error.
func conclude(e attempt.Ended, o configs.Output, scr *screen) error {
	if e.Err != nil {
		scr.fail(e.Err.Error())
		if len(e.Files) > 0 {
			scr.fail(e.Left(o))
		}
		return launch.ExitError{Code: e.ExitCode()}
	}
	if e.Killed() {
		scr.fail("the ranks were killed; " + e.Left(o))
		return launch.ExitError{Code: e.ExitCode()}
	}
	report, err := e.ReadReport(o)
	if err != nil {
		scr.fail("the run ended well, but its report is lost: " + err.Error())
		return launch.ExitError{Code: launch.ExitFailed}
	}
	if err := scr.sumUp(report); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	if err := errors.Join(report.Fault(), e.Fault); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			scr.fail(line)
		}
		return launch.ExitError{Code: launch.ExitFailed}
	}
	if code := e.ExitCode(); code != launch.ExitOK {
		return launch.ExitError{Code: code}
	}
	return nil
}
