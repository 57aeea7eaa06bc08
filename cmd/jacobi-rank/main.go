// Command jacobi-rank is one rank of a run: it joins the others, sweeps its stripe of the mesh and writes its part of the
// outputs. The launcher starts it; started alone it is a run of one rank.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

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

const usage = `jacobi-rank is one rank of a distributed Jacobi run. The launcher starts it, or a scheduler does:

  srun -n 8 jacobi-rank --config run.yaml
  mpirun -np 8 jacobi-rank --config run.yaml

Ranks that no launcher started meet through nats.url, or through a file that rank 0 writes to output.dir (or nats.rendezvous).
Started alone it is a run of one rank.

Usage:
  jacobi-rank [--config FILE] [--set key=value]...

Flags:
`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := pflag.NewFlagSet("jacobi-rank", pflag.ContinueOnError)
	file := flags.String("config", "", "run file (YAML, TOML or JSON)")
	set := flags.StringArray("set", nil, "set a key of the run file, as in grid.nx=1024; repeatable")
	by := flags.String("launched-by", os.Getenv(roster.EnvLaunchedBy),
		"`who` started this rank, where the environment speaks of several: "+
			strings.Join(roster.Origins(), ", ")+" (also "+roster.EnvLaunchedBy+")")
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
	result, err := start(*file, *set, *by)
	stop, isStop := errors.AsType[*stopped](err)
	switch {
	case isStop:
		return stop.die()
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
func start(file string, set []string, by string) (solver.Result, error) {
	origin, err := roster.Identify(os.Environ(), by)
	if err != nil {
		return solver.Result{}, err
	}
	if origin.Size > 0 && origin.By != roster.ByLauncher { // whose run.ranks must be the same
		set = append(set, fmt.Sprintf("run.ranks=%d", origin.Size))
	}
	cfg, err := configs.Load(configs.Options{File: file, Set: set, Environ: os.Environ()})
	if err != nil {
		return solver.Result{}, err
	}
	if origin.Size == 0 {
		origin.Size = cfg.Run.Ranks
	}
	if origin.Rank >= origin.Size {
		return solver.Result{}, fmt.Errorf("run.ranks %d: %v is none of them", cfg.Run.Ranks, origin)
	}
	if err := configs.Validate(cfg); err != nil {
		return solver.Result{}, err
	}
	log, err := logging.New(cfg.Log, origin.Rank)
	if err != nil {
		return solver.Result{}, err
	}
	if origin.By != roster.ByLauncher && origin.Rank == 0 {
		for _, text := range configs.StrayVariables(os.Environ(), roster.Variables()) {
			log.Warn(text)
		}
	}
	defer func() { _ = log.Sync() }() // stderr may refuse to sync; nothing is lost

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := newRank(origin, cfg, log, watchSignals(ctx))
	defer r.close()
	result, err := r.solve(ctx)
	if err == nil && r.by != roster.ByLauncher && r.finished != nil {
		err = output.Summary(os.Stdout, *r.finished)
	}
	return result, err
}
