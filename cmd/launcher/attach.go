package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/view"
	"jacobi/internal/run/hosts"
)

const (
	findRuns   = 4 * time.Second  // ranks give signs of life more often
	awaitRank0 = 10 * time.Second // for its first answer
	// A run whose ranks are silent for this long has ended unseen.
	silentRun = time.Minute
)

// isServer reports whether what is to be seen is a NATS server.
func isServer(what string) bool {
	scheme, _, ok := strings.Cut(what, "://")
	return ok && (scheme == "nats" || scheme == "tls" || scheme == "ws" || scheme == "wss")
}

// viewRun serves the page of a run that goes on, at the server n, until it ends or ctx does. run is the id of the run;
// "" if there is only one.
func viewRun(ctx context.Context, n configs.NATS, run, listen string, stderr io.Writer) error {
	run, err := findRun(ctx, n, run)
	if err != nil {
		return err
	}
	conn, err := connectTo(ctx, n, run)
	if err != nil {
		return err
	}
	defer conn.Close()
	board := view.NewBoard()
	live := view.NewLive(board)
	detach, err := live.Attach(ctx, conn, run)
	if err != nil {
		return err
	}
	defer detach()
	if err := live.Await(ctx, awaitRank0); err != nil {
		if errors.Is(err, view.ErrNoAnswer) {
			err = fmt.Errorf("run %s at %s: %w in a way that can be read here; a run seals its messages unless it was "+
				"started without a launcher: give both the same nats.secret_file", show.Text(run), conn.Server(), err)
		}
		return err
	}
	server, err := view.Listen(listen)
	if err != nil {
		return err
	}
	defer server.Close(viewGrace)
	server.Serve(board, live)
	if err := show.Fprint(stderr, "launcher: "+viewAt(server)+"\n"); err != nil {
		return err
	}
	return follow(ctx, conn, run, live)
}

// follow returns when the run has ended or ctx does.
func follow(ctx context.Context, conn roster.Conn, run string, live *view.Live) error {
	var heard atomic.Int64
	heard.Store(time.Now().UnixNano())
	stop, err := roster.WatchLife(conn, run, func() { heard.Store(time.Now().UnixNano()) })
	if err != nil {
		return err
	}
	defer stop()
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch {
		case live.Over():
			live.End()
			return nil
		case time.Since(time.Unix(0, heard.Load())) > silentRun:
			live.Fail(fmt.Sprintf("The ranks are silent for %v.", silentRun))
			return fmt.Errorf("run %s: its ranks are silent for %v", show.Text(run), silentRun)
		}
	}
}

// findRun returns the id of the run at the server: the given one, or the only one whose ranks give signs of life.
func findRun(ctx context.Context, n configs.NATS, run string) (string, error) {
	if strings.ContainsAny(run, ".*> \t\r\n") {
		return "", fmt.Errorf("--run %q: must be the id of a run", run)
	}
	if run != "" {
		return run, nil
	}
	conn, err := connectTo(ctx, n, "")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	runs, err := roster.Runs(ctx, conn, findRuns)
	switch {
	case err != nil:
		return "", err
	case len(runs) == 0:
		return "", fmt.Errorf("no run gives a sign of life at %s within %v", conn.Server(), findRuns)
	case len(runs) > 1:
		return "", fmt.Errorf("%d runs go on at %s; --run chooses one of %s", len(runs), conn.Server(),
			show.Text(strings.Join(runs, ", ")))
	}
	return runs[0], nil
}

// connectTo connects to the server, for a run or, if that is "", to see which there are.
func connectTo(ctx context.Context, n configs.NATS, run string) (*wire.Conn, error) {
	return wire.Connect(ctx, wire.Options{Server: n, RunID: run, Name: "jacobi view", Timeout: hosts.ConnectTimeout,
		Logger: zap.NewNop()})
}

// serverOf returns the access to the server at url, with what the run file, the flags and the environment say of it.
func serverOf(url, config string, set []string) (configs.NATS, error) {
	set = append(set, "nats.url="+url)
	cfg, err := configs.Load(configs.Options{File: config, Set: set, Environ: os.Environ(), Stdin: os.Stdin})
	if err == nil {
		err = configs.Validate(cfg)
	}
	return cfg.NATS, err
}
