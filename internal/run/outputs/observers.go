package outputs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// An observer reads the field while the sweeps go on, for files. All ranks have the same observers.
type observer interface {
	// take copies what it needs of this rank's rows while the sweeps wait. rest goes on beside the sweeps, and is done
	// before the next call.
	take(ctx context.Context, at solver.Sample) (rest func(context.Context) error, err error)
	// finish is called after the last sample.
	finish() error
}

// loop has an observer take one sample after the other, the last one of the field of the end.
type loop struct {
	observer
	what    string          // for errors
	ctx     context.Context // of what goes on beside the sweeps
	cancel  context.CancelFunc
	timeout time.Duration // of a step in which ranks wait for each other
	last    int           // sweeps of the newest sample; -1 for none
	ended   chan error    // has the outcome of what goes on; nil if nothing is left to wait for
}

func newLoop(ctx context.Context, what string, timeout time.Duration, by observer) *loop {
	ctx, cancel := context.WithCancel(ctx)
	return &loop{observer: by, what: what, ctx: ctx, cancel: cancel, timeout: timeout, last: -1}
}

// Sample implements solver.Sampler.
func (l *loop) Sample(ctx context.Context, at solver.Sample) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	ctx, cancel := awake.WithTimeout(ctx, l.timeout)
	defer cancel()
	rest, err := l.take(ctx, at)
	if err != nil {
		return err
	}
	l.last = at.Iterations
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

// Finish has the observer take the field of the end, and complete what it writes.
func (l *loop) Finish(ctx context.Context, result solver.Result) error {
	if l.last != result.Iterations {
		at := solver.Sample{Iterations: result.Iterations}
		if err := l.Sample(ctx, at); err != nil {
			return err
		}
	}
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.finish()
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
	if o.Many { // series are refused, and probes are read at the end
		return nil
	}
	c := o.Config.Output
	if c.Series() {
		o.series = o.newSeries()
		o.observe("series of fields", c.Every, o.series)
	}
	if o.probes, err = o.newProbes(); err != nil {
		return err
	}
	if o.probes != nil {
		o.observe("probes", c.ProbesInterval(), o.probes)
	}
	if o.viewers, err = o.openViewers(); err != nil {
		return err
	}
	o.samples = append(o.samples, o.viewers.sampling())
	o.OnClose(o.viewers.close)
	return nil
}

// observe has an observer see the run: its end and, with an interval, what comes before.
func (o *Outputs) observe(what string, every configs.Interval, by observer) {
	l := newLoop(o.Comm.Context(), what, o.Timeout, by)
	o.observers = append(o.observers, l)
	if every.Iterations > 0 {
		o.samples = append(o.samples, solver.Sampling{Sampler: l, Every: every.Iterations})
	}
	o.OnClose(l.Close)
}

// Finish completes what all observers write, and shows the last field to viewers. All ranks call it after the last
// sweep.
func (o *Outputs) Finish(ctx context.Context, result solver.Result) error {
	ctx, cancel := o.within(ctx)
	defer cancel()
	if err := o.center(ctx); err != nil {
		return err
	}
	var errs []error
	for _, l := range o.observers {
		errs = append(errs, l.Finish(ctx, result))
	}
	if o.viewers != nil {
		errs = append(errs, o.viewers.finish(ctx, result))
	}
	return errors.Join(errs...)
}

// series writes the field again and again, each time to a file of its own. While the sweeps wait, each rank writes its
// rows; beside them the files get to the disk and in place. A file that cannot be written is only a warning.
type series struct {
	*Outputs
	stats *output.SeriesReport // of the report of the run; rank 0 counts
	begun bool                 // the series of an earlier run is trimmed; rank 0 only
}

// seriesTicket is what rank 0 tells the others about the next file.
type seriesTicket struct {
	output.Ticket
	Fault string `json:"fault,omitempty"` // why there is no file; "" if there is one
}

func (o *Outputs) newSeries() *series {
	c := o.Config.Output
	o.Report.Series = &output.SeriesReport{Every: c.Every.Iterations, Files: c.SeriesFiles()}
	return &series{Outputs: o, stats: o.Report.Series}
}

func (s *series) take(ctx context.Context, at solver.Sample) (rest func(context.Context) error, err error) {
	var field *output.Field
	var t seriesTicket
	if s.id.Rank == 0 {
		if field, err = s.create(at.Iterations); err == nil {
			t.Ticket = field.Tickets[0]
		} else {
			t.Fault = err.Error()
		}
	}
	if t, err = roster.BroadcastOn(ctx, s.Comm, "series", t); err != nil {
		return nil, fmt.Errorf("series of fields: %w", err)
	}
	if t.Fault != "" {
		s.failed(at.Iterations, t.Fault)
		return func(context.Context) error { return nil }, nil
	}
	rows, _, fault := s.openRows(t.Ticket)
	err = s.view().Each(ctx, func(lo int, data []byte) error {
		if fault == nil {
			fault = rows.WriteRows(lo, data)
		}
		return nil
	})
	if err != nil && rows != nil {
		err = errors.Join(err, rows.Abandon())
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.complete(ctx, at.Iterations, field, rows, fault) }, nil
}

// create creates the file of the field after the given number of sweeps. Before the first one it removes what an
// earlier run has left of its series beyond the sweep from which this run goes on; and the field of that sweep if only
// the end of that run was a reason for it.
func (s *series) create(sweeps int) (*output.Field, error) {
	if !s.begun {
		keep := s.Start
		if keep == 0 || keep%s.stats.Every != 0 {
			keep--
		}
		if err := s.place.TrimSeries(keep); err != nil {
			return nil, err
		}
		s.begun = true
	}
	hx, hy := s.Problem.Spacings()
	c, m := s.Config.Output, s.Layout.Mesh
	return output.CreateField(s.place, c.SeriesFile(sweeps), m, output.FieldFormat(c, m, hx, hy))
}

// complete makes a file durable and puts it in place. It fails only if the ranks lose each other.
func (s *series) complete(ctx context.Context, sweeps int, field *output.Field, rows *output.FieldWriter,
	fault error) error {
	if rows != nil {
		if err := rows.Close(); fault == nil {
			fault = err
		}
	}
	text := ""
	if fault != nil {
		text = fmt.Sprintf("rank %d on %s: %v", s.id.Rank, s.Comm.Self().Host, fault)
	}
	faults, err := roster.GatherOn(ctx, s.Comm, "series", text)
	if err != nil {
		return fmt.Errorf("series of fields: %w", err)
	}
	if s.id.Rank != 0 {
		return nil
	}
	for _, f := range faults {
		if f != "" {
			err = errors.Join(err, errors.New(f))
		}
	}
	if err == nil {
		err = field.Finish()
	}
	if err == nil {
		err = s.place.Put(s.Config.Output.SeriesFile(sweeps))
	}
	if err != nil {
		s.failed(sweeps, errors.Join(err, field.Abort()).Error())
		return nil
	}
	s.stats.Written++
	s.stats.Sweeps, s.stats.Index = sweeps, s.Config.Output.Index()
	return nil
}

// failed counts a file that is not written. The first of several is a warning.
func (s *series) failed(sweeps int, why string) {
	if s.id.Rank != 0 {
		return
	}
	if s.stats.Failed++; s.stats.Failed == 1 || s.stats.Error != why {
		s.Log.Sugar().Warnf("%s is not written, the run goes on: %s", s.Config.Output.SeriesFile(sweeps), why)
	}
	s.stats.Error = why
}

func (s *series) finish() error { return nil }
