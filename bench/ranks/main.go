// Command ranks simulates the ranks of a large run: in one process, each with a connection of its own to a NATS server
// in another process. The ranks join, exchange rows of 4 KiB with their neighbours and add sums, and sweep nothing.
//
//	ranks -ranks 10000 -node 64 -passes 20 -timeout 5m
//
// Ranks of a simulated node share memory, nodes reach each other over NATS. The program prints, for each phase, the
// time and the processor time a rank, and fails if a phase takes longer than the timeout.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/natsserver"
)

func main() {
	ranks := flag.Int("ranks", 1000, "number of ranks")
	node := flag.Int("node", 64, "ranks of a node")
	passes := flag.Int("passes", 20, "number of exchanges and sums")
	timeout := flag.Duration("timeout", 2*time.Minute, "of a phase")
	serves := flag.Bool("serve", false, "be the server; for the program itself")
	flag.Parse()
	var err error
	switch {
	case *serves:
		err = serve()
	case *ranks < 2 || *node < 1 || *passes < 0 || *timeout <= 0 || flag.NArg() > 0:
		err = errors.New("at least 2 ranks, 1 rank a node, 0 passes and a positive timeout are allowed, no arguments")
	default:
		err = simulate(*ranks, *node, *passes, *timeout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ranks:", err)
		os.Exit(1)
	}
}

// serve runs the server that a launcher embeds, until standard input ends. It prints its URL.
func serve() error {
	s, err := natsserver.Start(natsserver.Options{RunID: runID, Log: zap.NewNop()})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.NATS().URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startServer starts serve in a process of its own. stop ends it.
func startServer() (at configs.NATS, pid int, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return at, 0, nil, err
	}
	cmd := exec.Command(self, "-serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return at, 0, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return at, 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return at, 0, nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return at, 0, nil, errors.Join(fmt.Errorf("the server gave no URL: %w", err), stop())
	}
	at.URL = strings.TrimSpace(url)
	return at, cmd.Process.Pid, stop, nil
}

// simulate takes all ranks through all phases.
func simulate(ranks, node, passes int, timeout time.Duration) (err error) {
	server, pid, stop, err := startServer()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	all := make([]*rank, ranks)
	for r := range all {
		all[r] = &rank{number: r, of: ranks, node: node, passes: passes, server: server, timeout: timeout}
	}
	defer func() {
		for _, r := range all {
			r.close()
		}
	}()
	fmt.Printf("%d ranks, %d a node\n%-10s %10s %18s %18s\n", ranks, node, "phase", "s", "ms a rank",
		"ms a rank, server")
	for _, phase := range []struct {
		name string
		run  func(*rank, context.Context) error
	}{
		{"connect", (*rank).connect}, {"join", (*rank).join}, {"links", (*rank).link}, {"sums", (*rank).open},
		{"passes", (*rank).run}, {"end", (*rank).end},
	} {
		start, mine, theirs := time.Now(), processorTime(0), processorTime(pid)
		g, ctx := errgroup.WithContext(context.Background())
		for _, r := range all {
			g.Go(func() error { return phase.run(r, ctx) })
		}
		if err := g.Wait(); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		fmt.Printf("%-10s %10.2f %18.2f %18.2f\n", phase.name, time.Since(start).Seconds(),
			1e3*(processorTime(0)-mine)/float64(ranks), 1e3*(processorTime(pid)-theirs)/float64(ranks))
	}
	return nil
}

// processorTime returns the seconds that the processors have spent on a process, 0 for this one.
func processorTime(pid int) float64 {
	var t unix.Timespec
	clock := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if pid != 0 {
		clock = int32(^pid<<3 | 2) // clock_getcpuclockid(3)
	}
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
