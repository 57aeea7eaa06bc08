package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/base/show"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/view"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/plan"
)

// anyPort is where a page is unless the user says otherwise.
const anyPort = "127.0.0.1:0"

const aboutView = `view serves a page: the field as a heat map with values and zoom, the norms, the ranks and the
result. The page is at the URL that view prints, on this machine's loopback interface; Ctrl-C ends it. ssh -L
reaches the port from another machine.

DIR is the output.dir of a finished run. With the URL of a NATS server, view shows a run that goes on there,
until it ends. A launcher seals the messages of its run with a secret that nobody else has, unless the run has a
nats.secret_file; give it here too.`

const viewExamples = `  launcher view out
  launcher view nats://server:4222 --set nats.secret_file=secret`

func newViewCommand(stderr io.Writer) *cobra.Command {
	var listen, run, config string
	var set []string
	cmd := &cobra.Command{
		Use:     "view {DIR | nats://SERVER}",
		Short:   "Show a run in a browser",
		Long:    aboutView,
		Example: viewExamples,
		Args:    arguments("the directory of a run or the URL of its NATS server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			scheme, _, ok := strings.Cut(args[0], "://")
			if !ok || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, scheme) {
				return viewFiles(ctx, args[0], listen, stderr)
			}
			cfg, err := validConfig(config, append(set, "nats.url="+args[0]))
			if err != nil {
				return err
			}
			return viewRun(ctx, cfg.NATS, run, listen, stderr)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&listen, "listen", anyPort, "`ADDRESS` of the page, on the loopback interface; port 0 is any free one")
	f.StringVar(&run, "run", "", "`ID` of the run, if several go on at the server")
	f.StringVarP(&config, "config", "c", "", "run `FILE` with the keys under nats")
	f.StringArrayVar(&set, "set", nil, "set a key of the run file, as in `nats.creds=FILE`; repeatable")
	return cmd
}

// viewFiles serves the files in dir until it is interrupted.
func viewFiles(ctx context.Context, dir, listen string, stderr io.Writer) (err error) {
	board := view.NewBoard()
	files, err := view.Open(ctx, dir, board)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	return showView(listen, board, files, stderr, func() error {
		<-ctx.Done()
		return nil
	})
}

// showView serves a page, says where it is, and ends it when until returns.
func showView(listen string, board *view.Board, source view.Source, stderr io.Writer, until func() error) error {
	server, err := view.Listen(listen)
	if err != nil {
		return err
	}
	defer server.Close(viewGrace)
	server.Serve(board, source)
	if err := show.Fprint(stderr, "launcher: "+viewAt(server)+"\n"); err != nil {
		return err
	}
	return until()
}

const (
	findRuns   = 4 * time.Second  // ranks send heartbeats more often
	awaitRank0 = 10 * time.Second // for its first answer
	// A run whose ranks are silent for this long has ended unseen.
	silentRun = time.Minute
)

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
	return showView(listen, board, live, stderr, func() error { return follow(ctx, conn, run, live) })
}

// follow returns when the run has ended or ctx does.
func follow(ctx context.Context, conn pubsub.Conn, run string, live *view.Live) error {
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
			live.End()
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

// findRun returns the id of the run at the server: the given one, or the only one whose ranks send heartbeats.
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

// viewGrace bounds the time in which open pages are given the end of a run. A browser that has just started may take
// seconds before it asks for a frame.
const viewGrace = 10 * time.Second

// liveView is the page of a run; nil without one.
type liveView struct {
	server *view.Server
	live   *view.Live
}

// openView begins to serve the page of a run that is about to start, if the configuration wants one.
func openView(cfg configs.Config, scr *screen) (*liveView, error) {
	if cfg.View.Listen == "" {
		return nil, nil
	}
	server, err := view.Listen(cfg.View.Listen)
	if err != nil {
		return nil, err
	}
	board := view.NewBoard()
	v := &liveView{server, view.NewLive(board)}
	server.Serve(board, v.live)
	scr.onWarn = v.live.Warn
	scr.always(viewAt(server))
	return v, nil
}

// viewAt says where the page is.
func viewAt(s *view.Server) string { return "the view is at " + s.URL() }

// watch shows an attempt of the run.
func (v *liveView) watch() attempt.Watch {
	if v == nil {
		return nil
	}
	return func(ctx context.Context, _ *plan.Plan, conn *wire.Conn, runID string) (stop func(), err error) {
		return v.live.Attach(ctx, conn, runID)
	}
}

// end shows how the run ended; fault is "" if it has results, in dir.
func (v *liveView) end(fault, dir string) {
	switch {
	case v == nil:
	case fault != "":
		v.live.Fail(fault)
	default:
		v.live.EndIn(dir)
	}
}

// close ends the page. Pages that are open keep what they show.
func (v *liveView) close() {
	if v != nil {
		v.server.Close(viewGrace)
		v.live.Close()
	}
}
