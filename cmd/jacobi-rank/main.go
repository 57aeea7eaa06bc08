// Command jacobi-rank is one rank of a run: it joins the others, sweeps its stripe of the mesh and writes its part of the
// outputs. The launcher starts it; started alone it is a run of one rank.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/logging"
	"jacobi/internal/output"
	"jacobi/internal/roster"
	"jacobi/internal/version"
	"jacobi/solver"
)

// Exit codes, which the launcher reads.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConsequence = 3 // failed because another rank did
	exitInterrupted = 130
)

const usage = `jacobi-rank is one rank of a distributed Jacobi run. The launcher starts it; started alone it is a run of one rank.

Usage:
  jacobi-rank [--config FILE] [--set key=value]...

Flags:
`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := pflag.NewFlagSet("jacobi-rank", pflag.ContinueOnError)
	file := flags.String("config", "", "run file (YAML, TOML or JSON)")
	set := flags.StringArray("set", nil, "set a key of the run file, as in grid.nx=1024; repeatable")
	showVersion := flags.Bool("version", false, "print the version")
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return exitOK
		}
		fmt.Fprintln(os.Stderr, "jacobi-rank:", err)
		return exitUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "jacobi-rank: argument %q: none are allowed\n", flags.Arg(0))
		return exitUsage
	}
	if *showVersion {
		fmt.Println("jacobi-rank", version.String())
		return exitOK
	}
	result, err := start(*file, *set)
	switch {
	case err != nil && roster.IsConsequence(err):
		fmt.Fprintln(os.Stderr, "jacobi-rank:", err)
		return exitConsequence
	case err != nil:
		fmt.Fprintln(os.Stderr, "jacobi-rank:", err)
		return exitFailed
	case result.Reason == solver.Interrupted:
		return exitInterrupted
	}
	return exitOK
}

// start reads who this rank is and what to solve, and solves it.
func start(file string, set []string) (solver.Result, error) {
	id, given, err := roster.FromEnv(os.Environ())
	if err != nil {
		return solver.Result{}, err
	}
	if !given {
		set = append(set, "run.ranks=1")
	}
	cfg, err := configs.Load(configs.Options{File: file, Set: set, Environ: os.Environ()})
	if err != nil {
		return solver.Result{}, err
	}
	if err := configs.Validate(cfg); err != nil {
		return solver.Result{}, err
	}
	log, err := logging.New(cfg.Log, id.Rank)
	if err != nil {
		return solver.Result{}, err
	}
	defer func() { _ = log.Sync() }() // stderr may refuse to sync; nothing is lost

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &rank{id: id, alone: !given, cfg: cfg, log: log, stop: watchSignals(ctx)}
	defer r.close()
	result, err := r.solve(ctx)
	if err == nil && r.alone {
		err = output.Summary(os.Stdout, *r.finished)
	}
	return result, err
}

// watchSignals returns a flag that the first SIGINT or SIGTERM raises; a second one ends the process at once.
func watchSignals(ctx context.Context) *atomic.Bool {
	var stop atomic.Bool
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			stop.Store(true)
			signal.Reset(os.Interrupt, syscall.SIGTERM)
		case <-ctx.Done():
		}
	}()
	return &stop
}
