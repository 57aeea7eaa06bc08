// Command jacobi-rank is one rank of a run. It joins the other ranks, sweeps its stripe of the mesh and writes its part
// of the outputs. The launcher or a scheduler starts it. Started alone, it is a run of one rank.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/logging"
	"jacobi/internal/base/show"
	"jacobi/internal/base/version"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
	"jacobi/internal/run/rank"
	"jacobi/internal/tools/examine"
	"jacobi/internal/tools/probe"
	"jacobi/internal/tools/soak"
	"jacobi/internal/tools/tasks"
)

const usage = `jacobi-rank is one rank of a distributed Jacobi run. The launcher starts it, or a scheduler does:

  srun -n 8 jacobi-rank --config run.yaml
  mpirun -np 8 jacobi-rank --config run.yaml
  srun -n 8 jacobi-rank --probe all            # measures the machines instead, as launcher probe does

Ranks that no launcher started meet through nats.url, or through a file that rank 0 writes to output.dir (or
nats.rendezvous). Started alone it is a run of one rank.

Usage:
  jacobi-rank [--config FILE] [--set key=value]...

Flags:
`

// main exits with the code of run.
func main() { os.Exit(run(os.Args[1:])) }

// run does what the arguments say and returns the exit code.
func run(args []string) int {
	flags := pflag.NewFlagSet("jacobi-rank", pflag.ContinueOnError)
	file := flags.String("config", "", "run file (YAML, TOML or JSON)")
	set := flags.StringArray("set", nil, "set a key of the run file, as in grid.nx=1024; repeatable")
	by := flags.String("launched-by", os.Getenv(roster.EnvLaunchedBy),
		"`WHO` started this rank, needed if the environment names several: "+
			strings.Join(roster.Origins(), ", ")+" (also "+roster.EnvLaunchedBy+")")
	var p probeFlags
	p.define(flags)
	showVersion := flags.Bool("version", false, "print the version")
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return launch.ExitOK
		}
		// A failed write to stderr cannot be reported.
		_ = show.Fprint(os.Stderr, fmt.Sprintf("jacobi-rank: %v; see jacobi-rank --help\n", err))
		return launch.ExitFailed
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "jacobi-rank: argument %q: none are allowed; see jacobi-rank --help\n", flags.Arg(0))
		return launch.ExitFailed
	}
	if *showVersion {
		fmt.Println("jacobi-rank", version.String())
		return launch.ExitOK
	}
	options := configs.Options{File: *file, Set: *set, Environ: os.Environ()}
	verdict, err := start(options, *by, p)
	stop, isStop := errors.AsType[*rank.StopError](err)
	switch {
	case isStop:
		return die(stop.Signal)
	case err != nil:
		if reportFailure(err, options, *by); roster.IsConsequence(err) {
			return launch.RankConsequence
		}
		return launch.ExitFailed
	case verdict == configs.Interrupted:
		return launch.RankInterrupted
	case verdict == configs.Missed:
		return launch.ExitMissed
	}
	return launch.ExitOK
}

// reportFailure prints the error that ends this rank. A launcher parses the line and shows it in the format of its log;
// without a launcher the line has that format already.
func reportFailure(err error, options configs.Options, by string) {
	origin, unknown := roster.Identify(options.Environ, by)
	_, ofAll := errors.AsType[*roster.RefusedError](err)
	format, rank := configs.LogFormat(options), origin.Rank
	switch {
	case unknown != nil:
		rank = -1
	case origin.By == roster.ByLauncher:
		format = ""
	case ofAll && rank > 0: // rank 0 says it
		return
	}
	tell(zapcore.ErrorLevel, format, rank, show.Values(err.Error()))
}

// start determines the rank's identity and configuration, and solves its part of the run.
func start(options configs.Options, by string, p probeFlags) (configs.Verdict, error) {
	origin, err := roster.Identify(options.Environ, by)
	if err != nil {
		return "", err
	}
	job, err := load(options, origin)
	if err != nil {
		return "", err
	}
	cfg := job.Config
	if origin.Size == 0 {
		origin.Size = cfg.Run.Ranks
	}
	if origin.Rank >= origin.Size {
		return "", fmt.Errorf("run.ranks %d: there is no %v", cfg.Run.Ranks, origin)
	}
	if err := configs.Validate(cfg); err != nil {
		return "", err
	}
	printer, err := p.read(&job.Task, origin)
	if err != nil {
		return "", err
	}
	if job.Probe != nil {
		cfg = probe.Config(cfg)
	}
	log, err := logging.New(zapcore.Lock(os.Stderr), cfg.Log.Level, cfg.Log.Format, origin.Rank)
	if err != nil {
		return "", err
	}
	if origin.By != roster.ByLauncher && origin.Rank == 0 {
		for _, text := range plan.StrayVariables(options.Environ) {
			log.Warn(text)
		}
	}
	defer func() { _ = log.Sync() }() // stderr may not support it; the log is unbuffered

	task, err := taskOf(job.Task, printer)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var held func() bool
	if launcher := os.Getppid(); origin.By == roster.ByLauncher {
		held = awake.Watch(launcher)
	}
	ctx = awake.Start(ctx, held)
	m, err := serveMetrics(cfg, origin, log)
	if err != nil {
		return "", err
	}
	defer m.Close()
	var watch func(roster.Event)
	if m != nil {
		watch = m.Run().Event
	}
	linger := sync.OnceFunc(func() {
		m.Linger(ctx, cfg.Metrics.Linger, func(text string) { log.Info(text) })
	})
	if job.Study {
		debug.SetGCPercent(studyGC)
	}
	result, err := rank.Run(ctx, rank.Options{
		Origin: origin, Environ: options.Environ, Config: cfg, Contents: job.Contents, Log: log,
		Stop: watchSignals(ctx), End: cancel,
		Ordered: job.Study, Task: task, Check: checker(origin, log),
		Stats:  job.Stats || origin.By != roster.ByLauncher && (cfg.Metrics.Listen != "" || cfg.View.Listen != ""),
		Watch:  watch,
		Viewed: func(url string) { tell(zapcore.InfoLevel, cfg.Log.Format, origin.Rank, "the view is at "+url) },
		Summarize: func(report output.Report, outputs *output.Held) error {
			if m != nil {
				awaitLast(ctx, m.Run())
			}
			return summarize(report, outputs, cfg.Output.ToStdout())
		},
		Linger: linger,
	})
	if err == nil && job.Probe != nil && origin.By != roster.ByLauncher && origin.Rank == 0 {
		err = printer.Finish()
	}
	linger()
	return cfg.Solver.Verdict(result.Reason), err
}

// load returns what the launcher has sent, or the configuration of a scheduler's ranks.
func load(o configs.Options, origin roster.Origin) (configs.Start, error) {
	if origin.By == roster.ByLauncher && os.Getenv(configs.EnvJob) != "" {
		return configs.FromLauncher(o.Environ)
	}
	if origin.Size > 0 {
		o.Set = append(o.Set, fmt.Sprintf("run.ranks=%d", origin.Size))
	}
	o.Decide = func(_ *configs.Config, given func(key string) bool) error {
		if origin.Size == 0 && !given("run.ranks") {
			return fmt.Errorf("run.ranks: it has to say how many ranks there are, as %s does not", origin.By)
		}
		return nil
	}
	cfg, err := configs.Load(o)
	return configs.Start{Planned: configs.Planned{Config: cfg}}, err
}

// checker returns what rank 0 of a scheduler's ranks calls before they solve: the checks of a launcher, whose warnings
// it logs. It is nil for other ranks.
func checker(origin roster.Origin, log *zap.Logger) func(context.Context, configs.Config) (configs.Planned, error) {
	if origin.By == roster.ByLauncher || origin.Rank != 0 {
		return nil
	}
	return func(ctx context.Context, cfg configs.Config) (configs.Planned, error) {
		p, err := plan.Scheduled(ctx, cfg, origin.Identity)
		if err != nil {
			return configs.Planned{}, err
		}
		err = p.Check(ctx, true)
		for _, text := range p.JobWarnings(ctx) {
			log.Warn(text)
		}
		return p.Planned(), err
	}
}

// studyGC has the collector of many short runs wait until the heap has grown to five times what is in use.
const studyGC = 400

// taskOf returns what the ranks do in place of solving; nil if they solve.
func taskOf(t configs.Task, printer *probe.Printer) (rank.Task, error) {
	switch {
	case t.Probe != nil:
		return tasks.Probe(t.Probe, printer.Add), nil
	case t.Examine:
		node, err := examine.Here()
		if err != nil {
			return nil, fmt.Errorf("examine this node: %w", err)
		}
		return tasks.Examine(node), nil
	case t.Soak != nil:
		var o soak.Order
		if err := json.Unmarshal(t.Soak, &o); err != nil {
			return nil, fmt.Errorf("order of a soak: %w", err)
		}
		return tasks.Soak(o), nil
	}
	return nil, nil
}

// tell prints a line on stderr, whatever log.level is. A failed write to stderr cannot be reported.
func tell(level zapcore.Level, format string, rank int, text string) {
	line := "jacobi-rank: " + text + "\n"
	if format == "json" {
		line = string(logging.Line(level, rank, text))
	}
	_ = show.Fprint(os.Stderr, line)
}

// summarize prints the summary of a run. If a file goes to standard output, the summary goes to standard error.
func summarize(report output.Report, outputs *output.Held, toStdout bool) error {
	if !toStdout {
		return errors.Join(output.Summary(os.Stdout, report, true), report.Fault())
	}
	return errors.Join(outputs.CopyTo(os.Stdout), output.Summary(os.Stderr, report, true), report.Fault())
}

// probeFlags are the flags of a rank that measures its machine for a scheduler. They mean what the arguments and flags
// of launcher probe mean.
type probeFlags struct {
	parts, expect string
	json          bool
}

func (p *probeFlags) define(f *pflag.FlagSet) {
	f.StringVar(&p.parts, "probe", "", "measure the machines instead of solving: `PARTS`, as in copies,peers, or all")
	f.BoolVar(&p.json, "json", false, "with --probe: print one JSON object")
	f.StringVar(&p.expect, "expect", "", "with --probe: `FILE` with bounds of figures")
}

// read sets what the flags have the ranks of a scheduler measure, and returns what prints it.
func (p probeFlags) read(task *configs.Task, origin roster.Origin) (out *probe.Printer, err error) {
	out = &probe.Printer{Out: os.Stdout, JSON: p.json}
	switch {
	case p.parts == "" && (p.json || p.expect != ""):
		return nil, errors.New("--json and --expect go with --probe")
	case p.parts == "":
		return out, nil
	case origin.By == roster.ByLauncher:
		return nil, errors.New("--probe is for ranks that a scheduler starts; with a launcher: launcher probe")
	}
	task.Probe, err = probe.NewRequest(strings.Split(p.parts, ","))
	if err == nil && p.expect != "" && origin.Rank == 0 {
		out.Bounds, err = probe.ReadBounds(p.expect)
	}
	return out, err
}

// watchSignals returns a context that ends with the first SIGINT or SIGTERM; its cause is a *rank.StopError. A second
// signal ends the process at once.
func watchSignals(ctx context.Context) context.Context {
	stop, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			number, _ := s.(syscall.Signal)
			cancel(&rank.StopError{Signal: number})
		case <-ctx.Done():
		}
	}()
	return stop
}

// die ends the process by the signal, as if it were not caught, so that the launcher ends the other ranks. It returns
// the exit code for a process that outlives its own signal.
func die(by syscall.Signal) int {
	_ = syscall.Kill(os.Getpid(), by)
	time.Sleep(time.Second) // process 1 of a container ignores its own signal
	return 128 + int(by)
}
