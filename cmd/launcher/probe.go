package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/probe"
)

const aboutProbe = `probe measures what the memories, links and network of the nodes of a run do. It takes the
flags that place a run. One rank of each node measures. No part needs a toolkit, and what needs a GPU says so
where there is none.

Parts, all of them by default:
%s
Figures have names, as in copies.gpu0.to_device.pinned; --json prints them all. --expect takes a file of bounds for
them, {"copies.gpu*.to_device.pinned": 50e9, "peers.gpu*.gpu*.latency": {"max": 5e-6}}, in bytes and seconds.

Exit codes: 0 everything was measured that can be, and is as expected; 1 a part failed, or something is not as
expected.`

const probeExamples = `  launcher probe
  launcher probe copies peers
  launcher probe -np 8 --host node1:4,node2:4 --json > machine.json
  launcher probe --expect accepted.json
  srun -n 8 jacobi-rank --probe all`

// probeOptions are the flags of launcher probe.
type probeOptions struct {
	options
	asJSON bool
	expect string
}

func newProbeCommand(stdout, stderr io.Writer) *cobra.Command {
	var o probeOptions
	var parts strings.Builder
	for _, p := range probe.Parts() {
		fmt.Fprintf(&parts, "  %-12s%s\n", p.Name, p.Help)
	}
	cmd := &cobra.Command{
		Use:       "probe [PART]... [-np N] [--json] [--expect FILE]",
		Short:     "Measure memories, links and network of the nodes of a run",
		Long:      fmt.Sprintf(aboutProbe, parts.String()),
		Example:   probeExamples,
		ValidArgs: probe.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := probe.NewRequest(args)
			if err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return startProbe(cmd.Context(), o, request, stdout, stderr)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object with a key for each part")
	f.StringVar(&o.expect, "expect", "", "`FILE` with bounds of figures; what does not meet them makes probe fail")
	o.define(f)
	return cmd
}

// startProbe starts ranks that measure, and prints what they find.
func startProbe(ctx context.Context, o probeOptions, request probe.Request, stdout, stderr io.Writer) error {
	out := &probe.Printer{Out: stdout, JSON: o.asJSON}
	var err error
	if o.expect != "" {
		if out.Bounds, err = probe.ReadBounds(o.expect); err != nil {
			return fmt.Errorf("--expect: %w", err)
		}
	}
	cfg, err := o.load()
	if err != nil {
		return err
	}
	cfg = probe.Config(cfg)
	scr := newScreen(stderr, stderr, o.look(cfg))
	limited, cancel := o.timeout.bound(ctx)
	defer cancel()
	p, err := plan.Make(limited, cfg, o.where, scr.Say)
	if err != nil {
		return err
	}
	w, err := o.starter(p)
	if err != nil {
		return err
	}
	for _, text := range plan.StrayVariables(os.Environ()) {
		scr.warn(text)
	}
	shown := &probing{screen: scr, out: out}
	end, err := attempt.Run(ctx, p, attempt.Options{Starter: w, Task: configs.Task{Probe: request},
		Limit: o.timeout.Limit, Screen: scr, Stdout: stdout,
		Show: func() (func(roster.Event), func()) { return shown.event, nil }})
	switch {
	case err != nil:
		return err
	case end.Err != nil:
		scr.fail(end.Err.Error())
		return exit(end.ExitCode())
	case end.ExitCode() != launch.ExitOK:
		return exit(end.ExitCode())
	case shown.err != nil:
		return shown.err
	case string(end.Report) != fmt.Sprint(out.Reports()):
		return fmt.Errorf("%d of %s reports of the ranks arrived", out.Reports(), end.Report)
	}
	if err = out.Finish(); errors.Is(err, probe.ErrFailed) {
		return exit(launch.ExitFailed)
	}
	return err
}

// probing is the progress of a probe.
type probing struct {
	screen *screen
	out    *probe.Printer
	err    error // of the first report that could not be printed
}

func (p *probing) event(e roster.Event) {
	var told probe.Event
	if e.Kind != roster.Probed || e.Rank != 0 || json.Unmarshal(e.Report, &told) != nil || p.err != nil {
		return
	}
	if told.Report != nil {
		p.err = p.out.Add(*told.Report)
	} else {
		p.screen.Say("measuring: " + told.Begins)
	}
}
