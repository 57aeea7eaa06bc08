package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"jacobi/internal/output"
	"jacobi/solver"
)

// ready is a rank that has created its output files and knows that the others have, too.
type ready struct {
	*loaded
	place     outputPlace
	files     runFiles // rank 0 only
	rows      fieldRows
	samples   solver.Samples // what reads the field while the sweeps go on
	viewer    *viewer
	series    *series    // nil if no series of fields is written
	probes    *probes    // nil if no values of points are recorded
	animation *animation // nil if none is written
	readyAt   time.Time
	began     traceBegin
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
func (l *loaded) prepareOutputs(ctx context.Context, open *closers) (_ *ready, err error) {
	r := &ready{loaded: l}
	ctx, cancel := l.withFileTimeout(ctx)
	defer cancel()
	defer func() {
		if err != nil {
			r.abort()
		}
	}()
	if r.place, err = l.findPlace(open); err != nil {
		return nil, err
	}
	if l.id.Rank == 0 {
		if r.files, err = l.createFiles(r.place.Place); err != nil {
			return nil, err
		}
	}
	if l.Config.Output.Field != "" {
		if r.rows, err = r.openField(ctx); err != nil {
			return nil, err
		}
	}
	if r.began, err = l.beginTrace(ctx); err != nil {
		return nil, err
	}
	if err := l.team.Barrier(ctx, "ready"); err != nil {
		return nil, err
	}
	if err := r.addSamplers(open); err != nil {
		return nil, err
	}
	r.readyAt = time.Now()
	return r, nil
}

// openField opens, on all ranks, the field's file that rank 0 has created.
func (r *ready) openField(ctx context.Context) (fieldRows, error) {
	var ticket []byte
	var err error
	if r.id.Rank == 0 {
		if ticket, err = json.Marshal(r.files.field.Ticket()); err != nil {
			return fieldRows{}, err
		}
	}
	if ticket, err = r.team.Broadcast(ctx, "field", ticket); err != nil {
		return fieldRows{}, err
	}
	var t output.Ticket
	if err := json.Unmarshal(ticket, &t); err != nil {
		return fieldRows{}, fmt.Errorf("ticket of the field's file: %w", err)
	}
	return r.openRows(t)
}

// openRows opens a file for this rank's rows.
func (r *ready) openRows(t output.Ticket) (fieldRows, error) {
	w, err := output.OpenField(r.Config.Output.Dir, t)
	if far := r.place.far; errors.Is(err, output.ErrNotShared) && far != nil {
		return fieldRows{output.FieldIn(far.Open(t.File), t), output.WroteNATS + far.Host()}, nil
	}
	return fieldRows{w, output.WroteFile}, err
}

// addSamplers opens what reads the field while the sweeps go on.
func (r *ready) addSamplers(open *closers) error {
	r.addSeries(open)
	r.addAnimation(open)
	if err := r.addProbes(open); err != nil {
		return err
	}
	return r.addViewer(open)
}

// finishSamples completes the files of all samples.
func (r *ready) finishSamples(ctx context.Context, result solver.Result) error {
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	return errors.Join(r.series.finish(ctx), r.probes.finish(ctx), r.animation.finish(ctx, result))
}

// view returns this rank's part of the field.
func (r *ready) view() output.View {
	return output.View{Mesh: r.layout.Mesh, Stripe: r.layout.Stripe, Rows: r.field, Initial: r.problem}
}

// addNorms appends norms to the history. Rank 0 calls it.
func (r *ready) addNorms(norms []float64) error {
	if r.files.history == nil {
		return nil
	}
	return r.files.history.Add(norms...)
}

// abort removes incomplete files.
func (r *ready) abort() {
	var errs []error
	errs = append(errs, r.rows.abandon())
	if err := errors.Join(append(errs, r.files.abort()...)...); err != nil {
		r.Log.Sugar().Warnf("remove incomplete outputs: %v", err)
	}
}
