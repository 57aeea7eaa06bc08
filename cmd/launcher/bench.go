package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/scaling"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	options
	rankList string
	sizeList string
	weak     bool
	repeat   int
	name     string
}

const aboutBench = `launcher bench runs the mesh of the run file, or the squares of --sizes, on each number of
ranks. It prints a table and writes it to output.dir as JSON and CSV. Each run uses the devices and
transports that launcher uses. It does solver.max_iterations sweeps, whatever the tolerance, and
writes no field, picture, history, report or checkpoint. The fastest of --repeat runs counts; the
first one warms up, too. All runs of a mesh must give the same field, else the benchmark fails.

Times are those of the sweeps (first sweep to last norm), without set-up: T_s of 1 rank, T_p of p.
Strong scaling, one mesh for all ranks: speed-up T_s/T_p, efficiency T_s/(p T_p).
Weak scaling, --weak, p times the rows for p ranks: speed-up p T_s/T_p, efficiency T_s/T_p.
Without 1 in the list of ranks there is no T_s, and no speed-up or efficiency.

GLUP/s are 10^9 points (nx * ny) updated a second. GB/s are effective: one value read and one
written for each point. "of copy" is their ratio to the speed of a copy, measured before the runs:
on CPUs of a field of the same size, with as many threads as all ranks have; on GPUs of memory on
each GPU used, added up. It exceeds 100% where one pass does several sweeps (halo.depth).
On the CPU a rank alone takes all cores; device.threads=1 shows how the work scales with cores.

Ctrl-C ends the benchmark; complete rows stay. Exit codes are those of launcher.`

const benchExamples = `  launcher bench --ranks 1,2,4,8
  launcher bench --ranks 1,2,4 --sizes 2048,16384 --set device.backend=cuda
  launcher bench --weak --ranks 1,2,4 --repeat 3
  launcher bench --config run.yaml --ranks 1,2 --set device.threads=1`

func newBenchCommand(stdout, stderr io.Writer) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:     "bench [--ranks LIST] [--sizes LIST] [--weak]",
		Short:   "Measure speed-up and efficiency over numbers of ranks and sizes",
		Long:    aboutBench,
		Example: benchExamples,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("np") && o.rankList != "" {
				return fmt.Errorf("-np %d and --ranks %q: only one of them is allowed", o.ranks, o.rankList)
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return startBench(cmd.Context(), o, stdout, stderr)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.rankList, "ranks", "", "`LIST` of numbers of ranks, as in 1,2,4 (default: 1, 2, 4... up to -np)")
	f.StringVar(&o.sizeList, "sizes", "",
		"`LIST` of meshes, N for N x N, as in 2048,16384 (default: grid.nx x grid.ny)")
	f.BoolVar(&o.weak, "weak", false, "weak scaling: p ranks get p times the rows")
	f.IntVar(&o.repeat, "repeat", 5, "runs of each; the fastest counts: `N`")
	f.StringVar(&o.name, "name", "bench", "the files are `NAME`.json and NAME.csv in output.dir")
	o.define(f)
	return cmd
}

// startBench checks the flags and all cases, then runs the benchmark.
func startBench(ctx context.Context, o benchOptions, stdout, stderr io.Writer) error {
	if o.repeat < 1 {
		return fmt.Errorf("--repeat %d: must be at least 1", o.repeat)
	}
	if o.name == "" || strings.ContainsAny(o.name, `/\`) || strings.HasPrefix(o.name, ".") {
		return fmt.Errorf("--name %q: must be a plain file name; output.dir says where", o.name)
	}
	cfg, err := o.load()
	if err != nil {
		return err
	}
	b := &bench{repeat: o.repeat, name: o.name, kind: scaling.Strong, limit: o.timeout.Limit,
		screen: newScreen(stdout, stderr, o.look(cfg))}
	if o.weak {
		b.kind = scaling.Weak
	}
	if b.cases, err = o.cases(ctx, cfg, b.screen.Say); err != nil {
		return err
	}
	if b.starter, err = o.starter(b.cases[0]); err != nil {
		return err
	}
	dir := cfg.Output.Dir
	if err := output.CheckDir(dir); err != nil {
		return err
	}
	var warnings []string
	for _, p := range b.cases {
		warnings = append(warnings, p.Warnings(os.Environ())...)
	}
	slices.Sort(warnings)
	for _, text := range slices.Compact(warnings) {
		b.screen.warn(text)
	}
	lock, err := dirlock.Take(dir, "bench "+o.name)
	if err != nil {
		return fmt.Errorf("output.dir %q: %w", dir, err)
	}
	err = b.run(ctx)
	if e := lock.Release(); err == nil {
		err = e
	}
	return err
}

// cases returns the plans of all runs that the flags ask for, by size and then by number of ranks. It fails if any of
// them cannot run.
func (o *benchOptions) cases(ctx context.Context, cfg configs.Config, say func(string)) ([]*plan.Plan, error) {
	ranks := upTo(max(1, cfg.Run.Ranks))
	if o.rankList != "" {
		var err error
		if ranks, err = parseList("--ranks", o.rankList); err != nil {
			return nil, err
		}
		slices.Sort(ranks)
	}
	sizes := []int{0} // the mesh of the configuration
	if o.sizeList != "" {
		var err error
		if sizes, err = parseList("--sizes", o.sizeList); err != nil {
			return nil, err
		}
	}
	var cases []*plan.Plan
	for _, size := range sizes {
		for _, n := range ranks {
			p, err := plan.Make(ctx, o.benchConfig(cfg, size, n), o.where, say)
			if err == nil {
				err = errors.Join(p.AllWork(), p.Check(ctx, false))
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.describe(cfg, size, n), err)
			}
			cases = append(cases, p)
		}
	}
	return cases, nil
}

// benchConfig returns the configuration of one case: all sweeps from the initial field, and no files.
func (o *benchOptions) benchConfig(c configs.Config, size, ranks int) configs.Config {
	if size > 0 {
		c.Grid.NX, c.Grid.NY = size, size
	}
	if o.weak {
		c.Grid.NY = plan.Times(c.Grid.NY, ranks)
	}
	c.Run.Ranks, c.Solver.Tolerance, c.Solver.RelativeTolerance = ranks, 0, 0
	c = c.Prefer(configs.Jacobi, "bench counts sweeps")
	c.Output = configs.Output{Dir: c.Output.Dir, PictureScale: c.Output.PictureScale}
	c.Checkpoint = configs.Default().Checkpoint
	return c
}

// describe names a case by the flags that lead to it.
func (o *benchOptions) describe(c configs.Config, size, ranks int) string {
	grid := o.benchConfig(c, size, ranks).Grid
	from := ""
	if size > 0 {
		from = fmt.Sprintf(" --sizes %d", size)
	}
	if o.weak {
		from += " --weak"
	}
	return fmt.Sprintf("bench --ranks %d%s (%d x %d)", ranks, from, grid.NX, grid.NY)
}
