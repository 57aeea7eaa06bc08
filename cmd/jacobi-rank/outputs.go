package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/farfiles"
	"jacobi/internal/output"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// outputs are the files of the run, as far as this rank has to do with them: every rank writes its rows, rank 0 the rest.
type outputs struct {
	*rank
	field   *output.Field       // rank 0 only; nil if not wanted
	rows    *output.FieldWriter // nil if not wanted
	history *output.History     // rank 0 only; nil if not wanted
	place   output.Place        // of all files, as rank 0 has them
	far     *farfiles.Place     // output.dir of the launcher, or of rank 0 where there is no launcher; nil if nobody is asked
	way     string              // by which this rank's rows go
	ready   time.Time
}

// prepareOutputs reserves what can be reserved before the sweeps, so that a full disk is found out now.
func (r *rank) prepareOutputs(ctx context.Context) (o *outputs, err error) {
	o = &outputs{rank: r}
	ctx, cancel := r.slowly(ctx)
	defer cancel()
	defer func() {
		if err != nil {
			o.abort()
		}
	}()
	c := r.cfg.Output
	if err := o.findPlace(); err != nil {
		return o, err
	}
	if r.id.Rank == 0 && c.History != "" {
		if o.history, err = output.CreateHistory(o.place, c.History, r.id.RunID); err != nil {
			return o, err
		}
	}
	if c.Field != "" {
		if err := o.openField(ctx); err != nil {
			return o, err
		}
	}
	if err := r.team.Barrier(ctx, "ready"); err != nil {
		return o, err
	}
	o.ready = time.Now()
	return o, nil
}

// findPlace finds out where the files go: into this rank's output.dir where that is the launcher's, else over NATS into the
// launcher's.
func (o *outputs) findPlace() error {
	c := o.cfg.Output
	o.place = output.Dir(c.Dir)
	names := c.Names()
	if len(names) == 0 {
		return nil
	}
	if o.alone {
		return checkPlace(c)
	}
	if o.by != roster.ByLauncher && o.id.Rank == 0 {
		if err := checkPlace(c); err != nil {
			return err
		}
		stop, err := farfiles.Serve(farfiles.Options{Conn: o.conn, RunID: o.id.RunID, Dir: c.Dir, Names: names, Log: o.log})
		if err != nil {
			return err
		}
		o.onClose(func() error { stop(); return nil })
		return nil
	}
	var err error
	if o.far, err = farfiles.Find(o.team.Context(), o.conn, o.id.RunID, o.patience()); err != nil {
		return err
	}
	if o.id.Rank != 0 {
		return nil
	}
	if o.far.Sees(c.Dir) {
		return checkPlace(c)
	}
	o.place = o.far
	o.log.Info("outputs go over NATS", zap.String("to", o.far.Host()))
	return nil
}

// checkPlace refuses an output.dir that the files cannot be written to.
func checkPlace(c configs.Output) error {
	return errors.Join(output.CheckDir(c.Dir), output.CheckNames(c))
}

// openField creates the field's file on rank 0 and opens it everywhere.
func (o *outputs) openField(ctx context.Context) (err error) {
	c := o.cfg.Output
	var ticket []byte
	if o.id.Rank == 0 {
		if o.field, err = output.CreateField(o.place, c.Field, o.id.RunID, o.layout.Mesh); err != nil {
			return err
		}
		if ticket, err = json.Marshal(o.field.Ticket()); err != nil {
			return err
		}
	}
	if ticket, err = o.team.Broadcast(ctx, "field", ticket); err != nil {
		return err
	}
	var t output.Ticket
	if err := json.Unmarshal(ticket, &t); err != nil {
		return fmt.Errorf("ticket of the field's file: %w", err)
	}
	o.way = output.WroteFile
	o.rows, err = output.OpenField(c.Dir, t)
	if errors.Is(err, output.ErrNotShared) && o.far != nil {
		o.rows, o.way, err = output.FieldIn(o.far.Open(t.File), t), output.WroteNATS+o.far.Host(), nil
	}
	return err
}

// addNorms takes the norms of the next sweeps; rank 0 only.
func (o *outputs) addNorms(norms []float64) error {
	if o.history == nil {
		return nil
	}
	return o.history.Add(norms...)
}

// abort removes what is not complete.
func (o *outputs) abort() {
	var errs []error
	if o.rows != nil {
		errs = append(errs, o.rows.Abandon())
	}
	if o.field != nil {
		errs = append(errs, o.field.Abort())
	}
	if o.history != nil {
		errs = append(errs, o.history.Abort())
	}
	if err := errors.Join(errs...); err != nil {
		o.log.Sugar().Warnf("remove incomplete outputs: %v", err)
	}
}

// write writes everything that is wanted and tells those who watch.
func (o *outputs) write(ctx context.Context, result solver.Result) error {
	begin := time.Now()
	ctx, cancel := o.slowly(ctx)
	defer cancel()
	view := output.View{Mesh: o.layout.Mesh, Stripe: o.layout.Stripe, Rows: o.backend, Initial: o.problem}
	picture, err := o.writeRows(ctx, view)
	if err != nil {
		return err
	}
	state, err := o.team.Relay(ctx, "hash", func(state []byte) ([]byte, error) {
		return output.HashRows(ctx, state, o.backend, o.layout.Stripe, o.layout.Mesh)
	})
	if err != nil {
		return err
	}
	part, err := json.Marshal(o.rankReport(result))
	if err != nil {
		return err
	}
	parts, err := o.team.Gather(ctx, "reports", part)
	if err != nil || o.id.Rank != 0 {
		return err
	}
	hash, err := output.Sum(state)
	if err != nil {
		return err
	}
	report, err := o.report(result, parts, hash)
	if err != nil {
		return err
	}
	if err := o.finish(picture, result); err != nil {
		return err
	}
	report.Ended = time.Now()
	report.Times.Output = report.Ended.Sub(begin).Seconds()
	if name := o.cfg.Output.Report; name != "" {
		if err := output.WriteReport(o.place, name, o.id.RunID, report); err != nil {
			return err
		}
	}
	o.finished = &report
	return o.tell(report)
}

// writeRows writes this rank's rows to the field and averages them for the picture, which rank 0 gets whole.
func (o *outputs) writeRows(ctx context.Context, view output.View) (*output.Thumbnail, error) {
	c := o.cfg.Output
	thumbnail := output.NewThumbnail(o.layout.Mesh)
	if c.Field != "" || c.Picture != "" {
		err := view.Each(ctx, func(lo int, rows []byte) error {
			if c.Picture != "" {
				if err := thumbnail.AddRows(lo, rows); err != nil {
					return err
				}
			}
			if o.rows == nil {
				return nil
			}
			return o.rows.WriteRows(lo, rows)
		})
		if err != nil {
			return nil, err
		}
	}
	if o.rows != nil {
		rows := o.rows
		o.rows = nil
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	if c.Picture == "" {
		return nil, nil
	}
	data, err := thumbnail.MarshalBinary()
	if err != nil {
		return nil, err
	}
	parts, err := o.team.Gather(ctx, "picture", data)
	if err != nil || o.id.Rank != 0 {
		return nil, err
	}
	for r, part := range parts[1:] {
		var t output.Thumbnail
		if err := t.UnmarshalBinary(part); err != nil {
			return nil, fmt.Errorf("picture of rank %d: %w", r+1, err)
		}
		if err := thumbnail.Merge(&t); err != nil {
			return nil, fmt.Errorf("picture of rank %d: %w", r+1, err)
		}
	}
	return thumbnail, nil
}

// finish puts rank 0's files in their places. All ranks have written their rows: their reports are here.
func (o *outputs) finish(picture *output.Thumbnail, result solver.Result) error {
	c := o.cfg.Output
	if o.field != nil {
		if err := o.field.Finish(); err != nil {
			return err
		}
	}
	if c.Picture != "" {
		caption := output.Caption{
			Title: o.problem.Name(), Sweeps: result.Sweeps, Norm: result.Norm, Scale: c.PictureScale,
			Stalled: result.Reason == solver.Stalled, Interrupted: result.Reason == solver.Interrupted,
		}
		if err := output.WritePicture(o.place, c.Picture, o.id.RunID, picture, caption); err != nil {
			return err
		}
	}
	if o.history != nil {
		if err := o.history.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// tell gives the report to the launcher.
func (o *outputs) tell(report output.Report) error {
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return o.team.Publish(roster.Event{Kind: roster.Finished, Report: b})
}
