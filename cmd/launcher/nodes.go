package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/run/agent"
	"jacobi/internal/run/hosts"
)

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
			cfg, err := configs.Load(configs.Options{File: config, Set: set, Environ: os.Environ(), Stdin: os.Stdin})
			if err != nil {
				return err
			}
			if err := configs.Validate(cfg); err != nil {
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
