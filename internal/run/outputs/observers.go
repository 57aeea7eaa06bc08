package outputs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jacobi/configs"
	"jacobi/internal/observe/film"
	"jacobi/internal/observe/frames"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/probes"
	"jacobi/internal/observe/series"
	"jacobi/internal/observe/view"
	"jacobi/solver"
)

// Observer reads the field while the sweeps go on. All ranks have the same observers.
type Observer interface {
	Sampling() solver.Sampling
	// Finish is called after the last sweep.
	Finish(ctx context.Context, result solver.Result) error
	// Close gives up what is not done.
	Close() error
}

// view returns this rank's part of the field.
func (o *Outputs) view() output.View {
	return output.View{Mesh: o.Layout.Mesh, Stripe: o.Layout.Stripe, Rows: o.Field, Initial: o.edges}
}

// addObservers opens what reads the field while the sweeps go on, as the configuration says.
func (o *Outputs) addObservers() (err error) {
	if o.Many { // series and animations are refused, and probes are read at the end
		return nil
	}
	c, view, timeout, start := o.Config.Output, o.view(), o.Timeout, o.Start
	hx, hy := o.Problem.Spacings()
	if c.Series() {
		o.series = series.New(series.Options{Comm: o.Comm, Log: o.Log, Output: c, Place: o.place, View: view,
			Format: output.FieldFormat(c, o.Layout.Mesh, hx, hy), Start: start, Timeout: timeout})
		o.observe(o.series)
	}
	if c.Animation != "" {
		o.film = film.New(film.Options{Comm: o.Comm, View: o.seen(), HX: hx, HY: hy,
			Every: c.AnimationInterval().Sweeps, Timeout: timeout})
		o.observe(o.film)
	}
	o.probes, err = probes.New(probes.Options{Comm: o.Comm, Log: o.Log, Output: c, Place: o.place, View: view,
		HX: hx, HY: hy, Start: start, Timeout: timeout})
	if err != nil {
		return err
	}
	if o.probes != nil {
		o.observe(o.probes)
	}
	if o.viewers, err = o.openFrames(); err != nil {
		return err
	}
	o.observe(o.viewers)
	return nil
}

// observe has an observer see the run.
func (o *Outputs) observe(by Observer) {
	o.observers = append(o.observers, by)
	o.samples = append(o.samples, by.Sampling())
	o.OnClose(by.Close)
}

// Finish completes what all observers write. All ranks call it after the last sweep.
func (o *Outputs) Finish(ctx context.Context, result solver.Result) error {
	ctx, cancel := o.within(ctx)
	defer cancel()
	var errs []error
	for _, by := range o.observers {
		errs = append(errs, by.Finish(ctx, result))
	}
	return errors.Join(errs...)
}

// openFrames makes the run answer viewers. All ranks call it.
func (o *Outputs) openFrames() (*frames.Sender, error) {
	run := o.describeRun()
	run.Outlines = o.outlines
	return frames.Open(frames.Options{Comm: o.Comm, View: o.seen(), Stripes: o.Stripes, Norms: o.Layout.Norms,
		Goal: o.Goal, Run: run, Scale: o.Config.Output.PictureScale})
}

// describeRun describes the run as its report will.
func (o *Outputs) describeRun() view.Run {
	about := o.Report
	about.Version = ""
	run := view.RunOf(about)
	run.Facts = slices.Concat(run.Facts, [][2]string{
		{"Ranks", fmt.Sprintf("%d, halo depth %d", o.id.Size, o.Layout.Depth)},
		{"Method", o.Config.Solver.Method},
		{"Ends", endOf(o.Config.Solver)},
	})
	return run
}

// endOf says in words when a run ends.
func endOf(s configs.Solver) string {
	text := fmt.Sprintf("after %d %ss", s.MaxIterations, s.Step())
	if s.RelativeTolerance > 0 {
		text = fmt.Sprintf("at a norm of %g of that of the data, or ", s.RelativeTolerance) + text
	}
	if s.Tolerance > 0 {
		text = fmt.Sprintf("at a norm of %g, or ", s.Tolerance) + text
	}
	return text
}
