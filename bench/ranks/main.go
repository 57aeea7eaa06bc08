// Command ranks simulates the ranks of a large run, in a few processes, each rank with a connection of its own to a
// NATS server in another process. The ranks join, exchange rows of 4 KiB with their neighbours and add sums, and sweep
// nothing.
//
//	ranks -ranks 10000 -node 64 -passes 20 -timeout 5m -processes 4
//
// Ranks of a simulated node share memory, nodes reach each other over NATS. The program prints, for each phase, the
// time and the processor time a rank. It fails if a phase takes longer than the timeout, and prints the stacks of all
// ranks if they do not end then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// options are the arguments of the program.
type options struct {
	ranks, node, passes int
	timeout             time.Duration // of a phase
	processes           int
	profile             string
}

// phases are what all ranks do, one after the other.
var phases = []struct {
	name string
	run  func(*rank, context.Context) error
}{
	{"connect", (*rank).connect}, {"join", (*rank).join}, {"links", (*rank).link}, {"sums", (*rank).open},
	{"passes", (*rank).run}, {"end", (*rank).end},
}

func main() {
	var o options
	flag.IntVar(&o.ranks, "ranks", 1000, "number of ranks")
	flag.IntVar(&o.node, "node", 64, "ranks of a node; with 1 all neighbours reach each other over NATS")
	flag.IntVar(&o.passes, "passes", 20, "number of exchanges and sums")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "of a phase")
	flag.IntVar(&o.processes, "processes", 1, "processes for the ranks; a rank needs two open files or more")
	flag.StringVar(&o.profile, "profile", "", "file for a profile of the processor time of the first process")
	serves := flag.Bool("serve", false, "be the server; for the program itself")
	part := flag.Int("part", -1, "be this process of the ranks; for the program itself")
	flag.Parse()
	var err error
	switch {
	case *serves:
		err = serve()
	case o.ranks < 2 || o.node < 1 || o.passes < 0 || o.timeout <= 0 || o.processes < 1 || o.processes > o.ranks ||
		flag.NArg() > 0:
		err = errors.New("at least 2 ranks, 1 rank a node, 0 passes, a positive timeout, 1 process and at most one a " +
			"rank are allowed, no arguments")
	case *part >= 0:
		err = o.takePart(*part)
	default:
		err = o.simulate()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ranks:", err)
		os.Exit(1)
	}
}

// simulate takes all ranks through all phases.
func (o options) simulate() (err error) {
	server, err := start("-serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	url, err := server.line()
	if err != nil {
		return fmt.Errorf("the server gave no URL: %w", err)
	}
	parts := make([]*process, o.processes)
	for i := range parts {
		if parts[i], err = start(append(os.Args[1:], "-part", fmt.Sprint(i))...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, parts[i].stop()) }()
		if err := parts[i].tell(url); err != nil {
			return err
		}
	}
	fmt.Printf("%d ranks, %d a node, %d processes\n%-10s %10s %18s %18s\n", o.ranks, o.node, o.processes, "phase", "s",
		"ms a rank", "ms a rank, server")
	mine := func() (sum float64) {
		for _, p := range parts {
			sum += p.processorTime()
		}
		return sum
	}
	for _, phase := range phases {
		begin, before, served := time.Now(), mine(), server.processorTime()
		for _, p := range parts {
			if err := p.tell(phase.name); err != nil {
				return err
			}
		}
		// The ranks end a phase themselves, or this shows for what they wait.
		late := time.AfterFunc(o.timeout+grace, func() {
			for _, p := range parts {
				_ = p.cmd.Process.Signal(unix.SIGQUIT) // it may have ended
			}
		})
		for i, p := range parts {
			if _, err := p.line(); err != nil {
				return fmt.Errorf("%s: process %d: %w", phase.name, i, err)
			}
		}
		late.Stop()
		fmt.Printf("%-10s %10.2f %18.2f %18.2f\n", phase.name, time.Since(begin).Seconds(),
			1e3*(mine()-before)/float64(o.ranks), 1e3*(server.processorTime()-served)/float64(o.ranks))
	}
	return nil
}

// grace is how much longer than the timeout a phase may take before its processes are killed.
const grace = 30 * time.Second
