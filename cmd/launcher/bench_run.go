package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/google/renameio/v2"

	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/scaling"
)

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
			english.Plural(len(p.Ranks), "rank", ""),
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
		Stdout: b.screen.data, Show: func() attempt.Progress { return b.progress(p) }})
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
	b.screen.fail(fmt.Sprintf("%d x %d, %s: %v", p.Mesh.NX, p.Mesh.NY, english.Plural(len(p.Ranks), "rank", ""), err))
	return launch.ExitError{Code: launch.ExitFailed}
}

// progress shows a bar on a terminal. Elsewhere the line that follows each run suffices.
func (b *bench) progress(p *plan.Plan) attempt.Progress {
	if style.IsTerminal(b.screen.stderr) && !b.screen.quiet && !b.screen.json {
		return newProgress(b.screen, p.Config.Solver, len(p.Ranks))
	}
	return noProgress{}
}

// noProgress shows nothing.
type noProgress struct{}

func (noProgress) Event(roster.Event) {}
func (noProgress) Close()             {}
