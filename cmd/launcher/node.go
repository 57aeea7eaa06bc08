package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/logging"
	"jacobi/internal/base/show"
	"jacobi/internal/base/version"
	"jacobi/internal/run/agent"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

const aboutNode = `node waits at a NATS server (nats.url) for launchers, and starts ranks for them on this machine. It
runs until it gets SIGINT or SIGTERM. The nats command lists it as the service jacobi-node (nats micro ls).

It runs at most one rank a slot at a time. Its slots are its GPUs, or its cores if it has none, or --slots. It kills
ranks whose launcher has ended or fallen silent. When it ends itself, it kills all its ranks.`

func newNodeCommand(stderr io.Writer) *cobra.Command {
	var config, metricsAt string
	var set []string
	var slots int
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Offer this machine's slots to launchers",
		Long:  aboutNode,
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("slots") && slots < 1 {
				return fmt.Errorf("--slots %d: must be at least 1", slots)
			}
			cfg, err := validConfig(config, set)
			if err != nil {
				return err
			}
			scr := newScreen(io.Discard, stderr, look{tag: launch.TagNone, json: cfg.Log.Format == "json"})
			return serveNode(cmd.Context(), cfg, slots, metricsAt, scr)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&slots, "slots", 0, "ranks at a time (default: the GPUs of this machine, else its cores)")
	f.StringVar(&metricsAt, "metrics", "", "serve the metrics of this node's ranks to Prometheus at `HOST:PORT`; "+
		"without HOST, at 127.0.0.1")
	f.StringVarP(&config, "config", "c", "", "run `FILE` with nats.url and what goes with it; other keys come from "+
		"the launchers")
	f.StringArrayVar(&set, "set", nil, "set a key of the run file, as in `nats.url=nats://host:4222`; repeatable")
	return cmd
}

// validConfig returns the merged configuration of a command that has no run.
func validConfig(file string, set []string) (configs.Config, error) {
	cfg, err := configs.Load(configs.Options{File: file, Set: set, Environ: os.Environ(), Stdin: os.Stdin})
	if err == nil {
		err = configs.Validate(cfg)
	}
	return cfg, err
}

// serveNode runs an agent until a signal ends it. metricsAt is where it serves metrics; "": nowhere.
func serveNode(ctx context.Context, cfg configs.Config, slots int, metricsAt string, scr *screen) error {
	log, err := logging.New(scr, cfg.Log.Level, cfg.Log.Format, -1)
	if err != nil {
		return err
	}
	path, err := launch.FindRankBinary()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	n, what := countSlots(cfg.Device.Backend)
	if slots > 0 {
		n, what = slots, "--slots"
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case s := <-signals:
			cancel(nodeEnded{s.(syscall.Signal), host})
		case <-ctx.Done():
		}
	}()
	node, served, err := serveNodeMetrics(metricsAt, scr)
	if err != nil {
		return err
	}
	if served != nil {
		defer served.Close()
	}
	conn, err := hosts.ConnectAgents(ctx, cfg.NATS, "jacobi node "+host, log)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = agent.Run(ctx, agent.Options{Conn: conn, Server: cfg.NATS, Host: host, Slots: n, What: what, Path: path,
		Prepare: measuredRanks{node, conn, log}.prepare(plan.Prepare), Log: log})
	if ended, ok := errors.AsType[nodeEnded](err); ok {
		scr.Say(ended.Error())
		return nil
	}
	return err
}

// nodeEnded is the cause of an agent's end by a signal.
type nodeEnded struct {
	signal syscall.Signal
	host   string
}

func (e nodeEnded) Error() string { return fmt.Sprintf("the agent on %s ends: %v", e.host, e.signal) }

// countSlots returns how many ranks suit this machine, and what the slots are.
func countSlots(backend string) (int, string) {
	if n := gpus(backend); n > 0 {
		return n, english.Plural(n, "GPU", "")
	}
	cores := runtime.GOMAXPROCS(0) // respects a container's limit
	return cores, english.Plural(cores, "core", "")
}

func newNodesCommand(stdout io.Writer) *cobra.Command {
	var config string
	var set []string
	var wait time.Duration
	var here bool
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List the node agents at a NATS server",
		Long:  "nodes lists the agents that answer at nats.url within --wait. It fails if there are none.",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := validConfig(config, set)
			if err != nil {
				return err
			}
			return listNodes(cmd.Context(), stdout, cfg.NATS, wait, here)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&config, "config", "c", "", "run `FILE` with nats.url and what goes with it")
	f.StringArrayVar(&set, "set", nil, "set a key of the run file, as in `nats.url=nats://host:4222`; repeatable")
	f.DurationVar(&wait, "wait", time.Second, "how long to wait for answers")
	f.BoolVar(&here, "here", false, "only agents with the name of this host, as a health check of one")
	return cmd
}

func listNodes(ctx context.Context, w io.Writer, n configs.NATS, wait time.Duration, here bool) error {
	conn, err := hosts.ConnectAgents(ctx, n, "jacobi nodes", zap.NewNop())
	if err != nil {
		return err
	}
	defer conn.Close()
	offers, err := agent.List(ctx, conn, wait)
	if err != nil {
		return err
	}
	if here {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("host name: %w", err)
		}
		offers = slices.DeleteFunc(offers, func(o agent.Offer) bool { return o.Host != host })
	}
	if len(offers) == 0 {
		return fmt.Errorf("no agent answered at %s within %v", conn.Server(), wait)
	}
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "agent\tpid\tfree\tslots\twhat\tversion")
	names := agent.Names(offers)
	for i, o := range offers {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\n", names[i], o.PID, o.Free, o.Slots, o.What, o.Version)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return show.Fprint(w, b.String())
}

// newSpawnCommand returns the command that a launcher on another machine starts over ssh.
func newSpawnCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "spawn",
		Short:  "Start ranks for a launcher on another machine, over stdin and stdout",
		Hidden: true,
		Args:   arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// These signals of a broken connection must not end this process before it has killed the ranks.
			signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
			host, err := os.Hostname()
			if err != nil {
				return fmt.Errorf("host name: %w", err)
			}
			client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
			g := launch.Greeting{Version: version.String(), Host: host, Node: hosts.ThisMachine(), Client: client}
			return launch.ServeStream(cmd.Context(), os.Stdin, os.Stdout, g, plan.Prepare)
		},
	}
}
