package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/launch"
	"jacobi/internal/shm"
	"jacobi/internal/version"
)

// newSpawnCommand returns the command that a launcher on another machine starts over ssh.
func newSpawnCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "spawn",
		Short:  "Start ranks for a launcher on another machine, which speaks over stdin and stdout",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// These signals of a broken connection must not end this process before it has killed the ranks.
			signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
			host, err := os.Hostname()
			if err != nil {
				return fmt.Errorf("host name: %w", err)
			}
			client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
			g := launch.Greeting{Version: version.String(), Host: host, Node: machine(), Client: client}
			return launch.ServeStream(cmd.Context(), os.Stdin, os.Stdout, g, prepare)
		},
	}
}

// machine identifies this machine, and a container on it; "" if that fails.
func machine() string {
	node, err := shm.LocalNode()
	if err != nil {
		return ""
	}
	return node.Boot + " " + node.PIDNamespace
}

// prepare checks whether ranks can run on this machine, sets their working directory, and starts services that they
// need.
func prepare(ctx context.Context, spec *launch.Spec) (done func(), err error) {
	if _, err := os.Stat(spec.Dir); err != nil {
		// mpirun does the same. Relative paths of the run file are wrong then; an error about one names the path.
		home, homeErr := os.UserHomeDir()
		if homeErr != nil {
			return nil, fmt.Errorf("working directory: %w; %w", err, homeErr)
		}
		fmt.Fprintf(os.Stderr, "%v; the ranks start in %s\n", err, home)
		spec.Dir = home
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	cfg, err := configs.Load(configs.Options{Environ: spec.Env})
	if err != nil {
		return nil, err
	}
	here, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	var at places
	for r := range cfg.Run.Ranks {
		at.ranks = append(at.ranks, launch.Placement{Rank: r})
	}
	for _, id := range spec.Ranks {
		at.ranks[id.Rank] = launch.Placement{Rank: id.Rank, Host: here, LocalRank: id.LocalRank,
			LocalSize: id.LocalSize}
	}
	at.here = map[string]bool{here: true}
	p, err := newPlan(cfg, at)
	if err != nil {
		return nil, err
	}
	if err := p.checkMemory(); err != nil {
		return nil, err
	}
	return p.shareGPUs(ctx, spec, func(text string) { fmt.Fprintln(os.Stderr, text) }), nil
}
