package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/tools/doctor"
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
		Short: "Test whether a run would start, and what each rank would use",
		Long:  aboutDoctor,
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return examineRun(cmd.Context(), o, asJSON, stdout, stderr)
		},
	}
	o.define(cmd.Flags())
	o.defineRestart(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnosis as JSON")
	return cmd
}

// examineRun tests the start of a run and prints the diagnosis.
func examineRun(ctx context.Context, o options, asJSON bool, stdout, stderr io.Writer) error {
	d, err := o.diagnose(ctx, stderr)
	if err != nil {
		return err
	}
	write := printDiagnosis
	if asJSON {
		write = printJSON
	}
	if err := write(stdout, d); err != nil {
		return fmt.Errorf("print the diagnosis: %w", err)
	}
	if !d.Starts {
		return launch.ExitError{Code: launch.ExitFailed}
	}
	return nil
}

// diagnose tests the start of the run. It shows the lines of the launcher and the ranks on stderr with --verbose only,
// because the diagnosis repeats their faults.
func (o *options) diagnose(ctx context.Context, stderr io.Writer) (doctor.Diagnosis, error) {
	cfg, err := o.load()
	if err == nil {
		cfg, err = o.resumed(cfg)
	}
	if err != nil {
		return doctor.Refused(err, os.Environ()), nil
	}
	if !o.verbose {
		stderr = io.Discard
	}
	return doctor.Examine(ctx, doctor.Run{
		Config:  attempt.WithMethod(ctx, cfg),
		Where:   o.where,
		Environ: os.Environ(), // after load, which sets the variables of -x
		Starter: o.starter,
		Limit:   o.timeout.Limit,
		Screen:  newScreen(stderr, stderr, o.look(cfg)),
	})
}
