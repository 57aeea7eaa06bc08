package rank

import (
	"context"
	"errors"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/film"
	"jacobi/internal/observe/frames"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/probes"
	"jacobi/internal/observe/series"
	"jacobi/internal/observe/trace"
	"jacobi/solver"
)

// outputs are what a run writes, and who watches it.
type outputs struct {
	place     outputPlace
	files     runFiles // rank 0 only
	rows      fieldRows
	samples   solver.Samples // what reads the field while the sweeps go on
	viewers   *frames.Sender
	observers []Observer
	series    *series.Series // nil if no series of fields is written
	probes    *probes.Probes // nil if no values of points are recorded
	film      *film.Film     // nil if no animation is written
	readyAt   time.Time
	trace     *trace.Gathering // nil without output.trace
}

// Observer reads the field while the sweeps go on. All ranks have the same observers.
type Observer interface {
	Sampling() solver.Sampling
	// Finish is called after the last sweep.
	Finish(ctx context.Context, result solver.Result) error
	// Close gives up what is not done.
	Close() error
}

// fieldRows is the file to which a rank writes its rows of the field.
type fieldRows struct {
	*output.FieldWriter        // nil if no field is written
	path                string // how the rows reach the file, for the report
}

// abandon closes the file, if one is open, without syncing.
func (f fieldRows) abandon() error {
	if f.FieldWriter == nil {
		return nil
	}
	return f.Abandon()
}

// prepareOutputs creates the files and reserves their space, so that a full disk is found before the sweeps. Each rank
// writes its rows of the field, rank 0 everything else. All ranks call it.
func (r *run) prepareOutputs(ctx context.Context) (err error) {
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	if r.place, err = r.findPlace(); err != nil {
		return err
	}
	if r.id.Rank == 0 {
		if r.files, err = r.createFiles(r.place.Place); err != nil {
			return err
		}
	}
	if r.Config.Output.Field != "" {
		if r.rows, err = r.openField(ctx); err != nil {
			return err
		}
	}
	if r.tracer != nil {
		if r.trace, err = trace.Begin(ctx, r.team, r.tracer); err != nil {
			return err
		}
	}
	if err := r.team.Barrier(ctx, "ready"); err != nil {
		return err
	}
	if err := r.addObservers(); err != nil {
		return err
	}
	r.readyAt = time.Now()
	return nil
}

// openField opens, on all ranks, the field's file that rank 0 has created.
func (r *run) openField(ctx context.Context) (fieldRows, error) {
	var t output.Ticket
	if r.id.Rank == 0 {
		t = r.files.field.Ticket()
	}
	t, err := roster.BroadcastOn(ctx, r.team, "field", t)
	if err != nil {
		return fieldRows{}, err
	}
	return r.openRows(t)
}

// openRows opens a file for this rank's rows.
func (r *run) openRows(t output.Ticket) (fieldRows, error) {
	w, err := output.OpenField(r.Config.Output.Dir, t)
	if far := r.place.far; errors.Is(err, output.ErrNotShared) && far != nil {
		return fieldRows{output.FieldIn(far.Open(t.File), t), output.WroteNATS + far.Host()}, nil
	}
	return fieldRows{w, output.WroteFile}, err
}

// addObservers opens what reads the field while the sweeps go on, as the configuration says.
func (r *run) addObservers() (err error) {
	c, view, timeout, start := r.Config.Output, r.view(), r.fileTimeout(), r.resumed.Start.Sweeps
	hx, hy := r.problem.Spacings()
	if c.Series() {
		r.series = series.New(series.Options{Team: r.team, Log: r.Log, Output: c, Place: r.place, View: view,
			Format: r.fieldFormat(), Start: start, Timeout: timeout,
			Open: func(t output.Ticket) (*output.FieldWriter, error) {
				rows, err := r.openRows(t)
				return rows.FieldWriter, err
			}})
		r.observe(r.series)
	}
	if c.Animation != "" {
		r.film = film.New(film.Options{Team: r.team, View: view, HX: hx, HY: hy,
			Every: c.AnimationInterval().Sweeps, Timeout: timeout})
		r.observe(r.film)
	}
	r.probes, err = probes.New(probes.Options{Team: r.team, Log: r.Log, Output: c, Place: r.place, View: view,
		HX: hx, HY: hy, Start: start, Timeout: timeout})
	if err != nil {
		return err
	}
	if r.probes != nil {
		r.observe(r.probes)
	}
	if r.viewers, err = r.openFrames(); err != nil {
		return err
	}
	r.observe(r.viewers)
	return nil
}

// observe has an observer see the run.
func (r *run) observe(by Observer) {
	r.observers = append(r.observers, by)
	r.samples = append(r.samples, by.Sampling())
	r.open.add(by.Close)
}

// finishObservers completes what all observers write.
func (r *run) finishObservers(ctx context.Context, result solver.Result) error {
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	var errs []error
	for _, o := range r.observers {
		errs = append(errs, o.Finish(ctx, result))
	}
	return errors.Join(errs...)
}

// view returns this rank's part of the field.
func (r *run) view() output.View {
	return output.View{Mesh: r.layout.Mesh, Stripe: r.layout.Stripe, Rows: r.field, Initial: r.problem}
}

// addNorms appends norms to the history. Rank 0 calls it.
func (o *outputs) addNorms(norms []float64) error {
	if o.files.history == nil {
		return nil
	}
	return o.files.history.Add(norms...)
}

// abort removes incomplete files.
func (r *run) abort() {
	var errs []error
	errs = append(errs, r.rows.abandon())
	if err := errors.Join(append(errs, r.files.abort()...)...); err != nil {
		r.Log.Sugar().Warnf("remove incomplete outputs: %v", err)
	}
}
