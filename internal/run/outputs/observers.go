package outputs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/observe/frames"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/view"
	"jacobi/solver"
)

// An observer reads the field while the sweeps go on, for files. All ranks have the same observers.
type observer interface {
	// take copies what it needs of this rank's rows while the sweeps wait. rest, if not nil, goes on beside the sweeps,
	// and is done before the next call.
	take(ctx context.Context, at solver.Sample) (rest func(context.Context) error, err error)
	// finish is called after the last sweep.
	finish(ctx context.Context, result solver.Result) error
}

// loop has an observer take one sample after the other.
type loop struct {
	observer
	what    string          // for errors
	ctx     context.Context // of what goes on beside the sweeps
	cancel  context.CancelFunc
	timeout time.Duration // of a step in which ranks wait for each other
	ended   chan error    // has the outcome of what goes on; nil if nothing is left to wait for
}

func newLoop(ctx context.Context, what string, timeout time.Duration, by observer) *loop {
	ctx, cancel := context.WithCancel(ctx)
	return &loop{observer: by, what: what, ctx: ctx, cancel: cancel, timeout: timeout}
}

// Sample implements solver.Sampler.
func (l *loop) Sample(ctx context.Context, at solver.Sample) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	ctx, cancel := awake.WithTimeout(ctx, l.timeout)
	defer cancel()
	rest, err := l.take(ctx, at)
	if err != nil || rest == nil {
		return err
	}
	ended := make(chan error, 1)
	l.ended = ended
	go func() {
		ctx, cancel := awake.WithTimeout(l.ctx, l.timeout)
		defer cancel()
		ended <- rest(ctx)
	}()
	return nil
}

// wait waits for what goes on and returns its error, once.
func (l *loop) wait(ctx context.Context) error {
	if l.ended == nil {
		return nil
	}
	select {
	case err := <-l.ended:
		l.ended = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", l.what, context.Cause(ctx))
	}
}

// Finish completes what the observer writes.
func (l *loop) Finish(ctx context.Context, result solver.Result) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.finish(ctx, result)
}

// closeGrace bounds how long Close waits for a write that cannot be interrupted.
const closeGrace = 2 * time.Second

// Close gives up what is not done.
func (l *loop) Close() error {
	l.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	_ = l.wait(ctx) // the run has ended
	return nil
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
	c := o.Config.Output
	if c.Series() {
		o.series = o.newSeries()
		o.observe("series of fields", c.Every, o.series)
	}
	if c.Animation != "" {
		o.film = &film{Outputs: o, last: -1}
		o.observe("animation", c.AnimationInterval(), o.film)
	}
	if o.probes, err = o.newProbes(); err != nil {
		return err
	}
	if o.probes != nil {
		o.observe("probes", c.ProbesInterval(), o.probes)
	}
	if o.viewers, err = o.openFrames(); err != nil {
		return err
	}
	o.samples = append(o.samples, o.viewers.Sampling())
	o.OnClose(o.viewers.Close)
	return nil
}

// observe has an observer see the run.
func (o *Outputs) observe(what string, every configs.Interval, by observer) {
	l := newLoop(o.Comm.Context(), what, o.Timeout, by)
	o.observers = append(o.observers, l)
	o.samples = append(o.samples, solver.Sampling{Sampler: l, Every: every.Sweeps})
	o.OnClose(l.Close)
}

// Finish completes what all observers write, and shows the last field to viewers. All ranks call it after the last
// sweep.
func (o *Outputs) Finish(ctx context.Context, result solver.Result) error {
	ctx, cancel := o.within(ctx)
	defer cancel()
	var errs []error
	for _, l := range o.observers {
		errs = append(errs, l.Finish(ctx, result))
	}
	if o.viewers != nil {
		errs = append(errs, o.viewers.Finish(ctx, result))
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
