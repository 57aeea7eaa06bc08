package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/show"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
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
	cmd := o.command(&cobra.Command{
		Use:     "bench [--ranks LIST] [--sizes LIST] [--weak]",
		Short:   "Measure speed-up and efficiency over numbers of ranks and sizes",
		Long:    aboutBench,
		Example: benchExamples,
	}, func(ctx context.Context) error { return startBench(ctx, o, stdout, stderr) })
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
	if o.ranks > 0 && o.rankList != "" {
		return fmt.Errorf("-np %d and --ranks %q: only one of them is allowed", o.ranks, o.rankList)
	}
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
	return cmp.Or(b.run(ctx), lock.Release())
}

// cases returns the plans of all runs that the flags ask for, by size and then by number of ranks. It fails if any of
// them cannot run.
func (o *benchOptions) cases(ctx context.Context, cfg configs.Config, say func(string)) ([]*plan.Plan, error) {
	ranks := doublings(max(1, cfg.Run.Ranks))
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

// doublings returns 1, 2, 4... below n, and n.
func doublings(n int) (list []int) {
	for k := 1; k < n; k *= 2 {
		list = append(list, k)
	}
	return append(list, n)
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

// parseList reads the value of a flag that holds distinct integers of at least 1.
func parseList(flag, text string) ([]int, error) {
	var list []int
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: %q: must be integers of at least 1, with commas between them", flag, text,
				word)
		}
		if slices.Contains(list, n) {
			return nil, fmt.Errorf("%s %q: %d stands there twice", flag, text, n)
		}
		list = append(list, n)
	}
	return list, nil
}

// bench is a benchmark whose cases have been checked.
type bench struct {
	cases   []*plan.Plan
	kind    scaling.Kind
	repeat  int
	name    string // name of the files, without extension
	starter attempt.Starter
	limit   attempt.Limit // for all runs together
	screen  *screen

	rates   scaling.CopyRates
	records []scaling.Record // of the complete rows
}

// run measures all cases. It prints each row, and rewrites the files, as soon as the row is complete.
func (b *bench) run(ctx context.Context) error {
	err := b.title(b.screen.stdout)
	if err == nil {
		err = b.measureAll(ctx)
	}
	done := fmt.Sprintf("%d of %s complete", len(b.records), english.Plural(len(b.cases), "row", ""))
	if len(b.records) > 0 {
		file := filepath.Join(b.cases[0].Config.Output.Dir, b.name)
		done += fmt.Sprintf(": %s.json, %s.csv", file, file)
	}
	b.screen.Say(done)
	return err
}

func (b *bench) measureAll(ctx context.Context) error {
	told, cancel := tellEnd(ctx, b.limit.Left)
	defer cancel()
	var first scaling.Record // the case with the fewest ranks of the current size
	for i, p := range b.cases {
		rec, err := b.measure(ctx, told, p)
		if err != nil {
			return err
		}
		if i == 0 || p.Config.Run.Ranks <= b.cases[i-1].Config.Run.Ranks {
			first = rec // the number of ranks fell: a new size begins
		}
		if b.kind == scaling.Strong {
			if err := rec.SameField(first); err != nil {
				return b.failed(p, err)
			}
		}
		if first.Ranks == 1 {
			rec.Against(first)
		}
		if err := b.add(p, rec); err != nil {
			return err
		}
	}
	return nil
}

// tellEnd returns a context that ends at the timeout, if there is one, or with the first signal. Its cause is the exit
// code. Ranks do not get this context, because its end would kill them: they are told to stop.
func tellEnd(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	none := func() {}
	if timeout > 0 {
		ctx, none = context.WithTimeoutCause(ctx, timeout, launch.ExitError{Code: launch.ExitTimeout})
	}
	told, cancel := context.WithCancelCause(ctx)
	signals, stop := launch.NotifySignals()
	go func() {
		select {
		case sig := <-signals:
			number, _ := sig.(syscall.Signal)
			cancel(launch.ExitError{Code: launch.ExitSignal + int(number)})
		case <-told.Done():
		}
	}()
	return told, func() { stop(); cancel(nil); none() }
}

// title prints the lines above the table.
func (b *bench) title(w io.Writer) error {
	p := b.cases[0]
	machine := fmt.Sprintf("%s: %s, %s", p.Hosts(), device.Processor(), english.Plural(runtime.NumCPU(), "core", ""))
	if len(p.GPUs) > 0 {
		machine += fmt.Sprintf(", %s (%s)", english.Plural(len(p.GPUs), "GPU", ""), p.GPUs[0].Name)
	}
	return show.Fprint(w, fmt.Sprintf("%s, %s, %s; the fastest of %s\nOn %s\n%s.\n%s\n\n", p.Title, p.Mesh.DType,
		english.Plural(p.Config.Solver.MaxIterations, "sweep", ""), english.Plural(b.repeat, "run", ""),
		machine, b.kind.Definition(),
		scaling.Legend))
}

// add adds a complete record to the files and prints its row.
func (b *bench) add(p *plan.Plan, rec scaling.Record) error {
	b.records = append(b.records, rec)
	for _, f := range []struct {
		ext   string
		write func([]scaling.Record) ([]byte, error)
	}{{".json", scaling.JSON}, {".csv", scaling.CSV}} {
		data, err := f.write(b.records)
		if err == nil {
			dir := p.Config.Output.Dir
			err = renameio.WriteFile(filepath.Join(dir, b.name+f.ext), data, 0o666, renameio.WithTempDir(dir))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", b.name+f.ext, err)
		}
	}
	row := rec.Row()
	if len(b.records) == 1 { // the first run may print lines before its row
		row = scaling.Header() + row
	}
	return show.Fprint(b.screen.stdout, row)
}

// measure runs a case b.repeat times, unless told ends.
func (b *bench) measure(ctx, told context.Context, p *plan.Plan) (scaling.Record, error) {
	var none scaling.Record
	rate, err := b.rates.Of(told, p)
	if err != nil {
		return none, err
	}
	runs := make([]output.Report, b.repeat)
	for i := range runs {
		if told.Err() != nil {
			return none, context.Cause(told)
		}
		if runs[i], err = b.once(ctx, told, p); err != nil {
			return none, err
		}
		b.screen.Say(fmt.Sprintf("%d x %d, %s: run %d of %d: %.4g s, %.3f GLUP/s", p.Mesh.NX, p.Mesh.NY,
			english.Plural(len(p.Placements), "rank", ""),
			i+1, b.repeat, runs[i].Times.Sweeps, runs[i].GLUPS))
	}
	rec, err := scaling.NewRecord(b.kind, runs)
	if err != nil {
		return none, b.failed(p, err)
	}
	if rec.Host, err = os.Hostname(); err != nil {
		return none, fmt.Errorf("host name: %w", err)
	}
	rec.Processor, rec.Cores = device.Processor(), runtime.NumCPU()
	if rate > 0 {
		rec.Roofline(rate)
	}
	return rec, nil
}

// once does one run and returns its report.
func (b *bench) once(ctx, told context.Context, p *plan.Plan) (output.Report, error) {
	var none output.Report
	limit := b.limit
	if end, ok := told.Deadline(); ok {
		limit.Left = max(1, time.Until(end))
	}
	end, err := attempt.Run(ctx, p, attempt.Options{Starter: b.starter, Limit: limit, Screen: b.screen,
		Stdout: b.screen.data, Show: func() (func(roster.Event), func()) { return b.progress(p) }})
	switch {
	case err != nil:
		return none, err
	case end.Err != nil:
		return none, b.failed(p, end.Err)
	case end.ExitCode() != launch.ExitOK:
		return none, launch.ExitError{Code: end.ExitCode()}
	}
	report, err := end.ReadReport(p.Config.Output)
	if err != nil {
		return none, b.failed(p, fmt.Errorf("the run ended well, but its report is lost: %w", err))
	}
	// The tolerance of a benchmark is 0, so only a stall ends a run early.
	if want := p.Config.Solver.MaxIterations; report.Sweeps != want {
		return none, b.failed(p, fmt.Errorf("the field stalled after %d of %d sweeps; set solver.max_iterations to %d "+
			"or less, or take a larger mesh", report.Sweeps, want, report.Sweeps))
	}
	return report, nil
}

// failed reports a failure of one case, which ends the benchmark.
func (b *bench) failed(p *plan.Plan, err error) error {
	b.screen.fail(fmt.Sprintf("%d x %d, %s: %v", p.Mesh.NX, p.Mesh.NY, english.Plural(p.Ranks, "rank", ""), err))
	return exit(launch.ExitFailed)
}

// progress shows a bar on a terminal. Elsewhere the line that follows each run suffices.
func (b *bench) progress(p *plan.Plan) (event func(roster.Event), done func()) {
	if !b.screen.barred() {
		return nil, nil
	}
	return newProgress(b.screen, p.Config.Solver, len(p.Placements))
}
