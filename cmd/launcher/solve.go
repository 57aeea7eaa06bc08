package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/net/roster"
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
		Watch: page.watch(),
		Task:  configs.Task{Stats: m != nil || page != nil || scr.events != nil || scr.barred()}}
	starts := 0
	end, err := r.Run(ctx, p, opts, began, func(p *plan.Plan) (event func(roster.Event), done func()) {
		starts++
		if scr.events != nil {
			if e, err := planEvent(p, starts); err == nil { // a configuration always has a JSON form
				scr.events.Write(e)
			}
		}
		if starts == 1 { // after the plan, which is the first event
			for _, text := range o.warnings(ctx, p) {
				scr.warn(text)
			}
		}
		if m != nil {
			m.Run().Begin(metrics.InfoOf(p.Config, len(p.Placements)))
		}
		show, done := announce(ctx, p, scr)
		return func(e roster.Event) {
			tellEvent(scr.events, e)
			if m != nil {
				m.Run().Event(e)
			}
			if show != nil {
				show(e)
			}
		}, done
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
	if page != nil {
		page.server.Linger(ctx, scr.Say)
	}
	if end.Err != nil || end.Stopped() {
		if sweep, ok := saved.LastSaved(ctx); ok {
			scr.Say(restartHint(cfg.Solver.Step(), sweep, cfg.Checkpoint.Place(), o.config))
		}
	}
	return err
}

// announce says what a run will do, and returns what shows its progress, as attempt.Options.Show does.
func announce(ctx context.Context, p *plan.Plan, scr *screen) (event func(roster.Event), done func()) {
	scr.Say(p.String())
	if p.Idle != "" {
		scr.Say(p.Idle)
	}
	scr.Say(p.Writes())
	if e := p.Expects(ctx); e.Hint != "" {
		scr.Say(e.Hint)
	}
	return newProgress(scr, p.Config.Solver, len(p.Placements))
}

// conclude prints how the run ended, and returns its exit code as an error.
func conclude(e attempt.Ended, o configs.Output, scr *screen) error {
	switch {
	case e.Err != nil:
		if scr.fail(e.Err.Error()); len(e.Files) > 0 {
			scr.fail(e.Left(o))
		}
		return exit(e.ExitCode())
	case e.Killed():
		scr.fail("the ranks were killed; " + e.Left(o))
		return exit(e.ExitCode())
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
	return exit(e.ExitCode())
}

// defineRestart defines the flags that say from which state a run starts.
func (o *options) defineRestart(f *pflag.FlagSet) {
	f.BoolVar(&o.restart, "restart", false, "go on from the newest checkpoint in checkpoint.dir or "+
		"checkpoint.nats")
	f.StringVar(&o.resume, "resume", "", "go on from the checkpoint in `DIR`, or from the newest of several there")
	f.IntVar(&o.restarts, "max-restarts", 0, "start the run again up to `N` times when a rank or a host dies, from "+
		"its newest checkpoint")
}

const aboutRestart = "--restart goes on from where checkpoints are written"

// resumed returns cfg with the choice of --restart or --resume.
func (o *options) resumed(cfg configs.Config) (configs.Config, error) {
	switch {
	case o.restart && o.resume != "":
		return cfg, errors.New("--restart and --resume: only one of them is allowed; " + aboutRestart)
	case o.resume != "":
		cfg.Checkpoint.Resume = o.resume
	case o.restart && cfg.Checkpoint.Place() == "":
		return cfg, errors.New("--restart: checkpoint.dir or checkpoint.nats has to say where the checkpoints are")
	case o.restart:
		cfg.Checkpoint.Resume = cfg.Checkpoint.Place()
	}
	return cfg, nil
}

// warnings returns the warnings before a run: those of its plan, and one if restarts have nothing to go on from.
func (o *options) warnings(ctx context.Context, p *plan.Plan) []string {
	list := append(p.StartWarnings(os.Environ()), p.JobWarnings(ctx)...)
	if o.restarts > 0 && !p.Config.Checkpoint.On() {
		list = append(list, fmt.Sprintf("--max-restarts %d: no checkpoints are saved, and so a restart begins again "+
			"with the initial field; checkpoint.every and checkpoint.dir, or checkpoint.nats, save them", o.restarts))
	}
	return list
}

// restartHint tells the user of a run that failed or was stopped after it had saved sweep how to resume it; step is
// configs.Solver.Step. place is where the checkpoints are, and file is the run file.
func restartHint(step string, sweep int, place, file string) string {
	text := fmt.Sprintf("--restart goes on after %s %d, from %s", step, sweep, place)
	if file == configs.StandardInput { // it cannot be read a second time
		return text
	}
	return text + ": " + unbroken(restartCommand(os.Args))
}

// plainWord matches a word that needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// shellWord returns a word as a shell reads it.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return launch.ShellQuote(word)
}

// restartCommand returns the shell command that restarts the run of args from its newest checkpoint.
func restartCommand(args []string) string {
	var words []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--restart" || strings.HasPrefix(a, "--restart=") || strings.HasPrefix(a, "--resume="):
		case a == "--resume":
			i++ // its value
		default:
			words = append(words, shellWord(a))
		}
	}
	return strings.Join(append(words, "--restart"), " ")
}
