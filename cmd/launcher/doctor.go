package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/examine"
	"jacobi/internal/launch"
	"jacobi/internal/version"
)

const aboutDoctor = `doctor tests the start of a run: write doctor after launcher in the command line of the run. It
starts the ranks on their places as the run would. They join, choose their GPUs, connect to each neighbour, allocate
their memory, load the field, reserve the outputs, report what they found, and end before the first sweep. doctor then
removes everything that they made.

Exit codes: 0 the run would start, with or without warnings; 1 it would not, and each fault is printed with its remedy.`

func newDoctorCommand(stdout, stderr io.Writer) *cobra.Command {
	var o options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [-np N] [--config FILE] [--set key=value]...",
		Short: "Test whether a run would start, and show what each node and pair of ranks would use",
		Long:  aboutDoctor,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			quiet := io.Discard // the diagnosis repeats the faults that ranks report
			if o.verbose {
				quiet = stderr
			}
			return examineRun(cmd.Context(), o, asJSON, stdout, newScreen(quiet, quiet, look{tag: o.tag}))
		},
	}
	o.define(cmd.Flags())
	o.defineRestart(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnosis as JSON")
	return cmd
}

// examineRun tests the start of a run and prints the diagnosis.
func examineRun(ctx context.Context, o options, asJSON bool, stdout io.Writer, scr *screen) error {
	d := &diagnosis{Version: version.String(), Faults: []finding{}, Warnings: []finding{}, Nodes: []nodeFindings{},
		Ranks: []examine.Rank{}}
	if err := d.examine(ctx, o, scr); err != nil {
		return err
	}
	d.Starts = len(d.Faults) == 0
	write := d.print
	if asJSON {
		write = d.printJSON
	}
	if err := write(stdout); err != nil {
		return fmt.Errorf("print the diagnosis: %w", err)
	}
	if !d.Starts {
		return exitError{launch.ExitFailed}
	}
	return nil
}

// examine takes the steps of a run. It first makes all checks that need no ranks, so that it reports all their faults
// at once, and starts ranks only if there are none. It returns an error if it could not complete, not for a fault of
// the run.
func (d *diagnosis) examine(ctx context.Context, o options, scr *screen) error {
	cfg, err := o.load()
	for _, text := range strayVariables(os.Environ()) { // after load, which sets the variables of -x
		d.warn("unset it, or set the variable that was meant", "%s", text)
	}
	if err == nil {
		cfg, err = o.resumed(cfg)
	}
	if err != nil {
		d.fault(err, correctKey)
		return nil
	}
	defer examine.Undo(cfg.Output.Dir)()
	defer examine.Undo(cfg.Checkpoint.Dir)()
	if err := configs.Validate(cfg); err != nil {
		d.fault(err, correctKey)
		d.withoutPlan(ctx, cfg)
		return nil
	}
	scr.look = o.look(cfg)
	at, err := o.places.place(ctx, cfg, scr.say)
	if err != nil {
		d.fault(err, "ask for fewer ranks with -np, or give more places: --host, --hostfile, or agents (launcher "+
			"node) at nats.url")
		if o.places.nodes { // the search for agents has tested the server
			cfg.NATS.URL = ""
		}
		d.withoutPlan(ctx, cfg)
		return nil
	}
	p, err := newPlan(cfg, at)
	d.fault(err, "correct the key that it names")
	if p == nil {
		return nil
	}
	p.trial = true
	d.Run = p.String()
	for _, text := range p.notes {
		d.warn("give another file or grid.dtype if that is not wanted", "%s", text)
	}
	w, err := o.starter(p)
	if err != nil {
		d.fault(err, "build both programs (make build) and keep them in one folder")
		return nil
	}
	for _, f := range p.faults(ctx, true) {
		d.fault(f.error, f.do)
	}
	d.outlook(ctx, p)
	d.server(ctx, cfg)
	d.reach(ctx, p, w.ssh, scr)
	if len(d.Faults) > 0 {
		return nil
	}
	if err := d.output(p); err != nil {
		return err
	}
	w.vars = append(w.vars, examine.Env+"=1")
	c := &collected{ranks: make([]examine.Rank, len(p.ranks))}
	end, err := runRanks(ctx, p, w, o.timeout, scr, func() progress { return c })
	if err != nil {
		d.fault(err, "correct it on the host that it names")
		return nil
	}
	return d.conclude(p, end.Outcome, c)
}

const correctKey = "correct the key or flag; launcher --dry-run prints all keys"
