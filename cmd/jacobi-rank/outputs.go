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
)

// outputs are the files of the run on one rank. Each rank writes its rows of the field, rank 0 everything else.
type outputs struct {
	*rank
	// Only rank 0 has these; a file that is not written is nil.
	field   *output.Field
	picture output.Partial
	history *output.History
	text    output.Partial // the report
	place   output.Place   // where rank 0 creates the files

	rows     *output.FieldWriter // nil if no field is written
	rowFault error               // why this rank's rows are not in the field
	far      *farfiles.Place     // output.dir, if another process holds it
	path     string              // how this rank's rows reach the field's file, for the report
	ready    time.Time
}

// prepareOutputs creates the files and reserves their space, so that a full disk is found before the sweeps.
func (r *rank) prepareOutputs(ctx context.Context) (o *outputs, err error) {
	o = &outputs{rank: r}
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	defer func() {
		if err != nil {
			o.abort()
		}
	}()
	if err := o.findPlace(); err != nil {
		return o, err
	}
	if r.id.Rank == 0 {
		if err := o.create(); err != nil {
			return o, err
		}
	}
	if r.cfg.Output.Field != "" {
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

// create creates rank 0's files and reserves their maximal sizes.
func (o *outputs) create() error {
	c := o.cfg.Output
	room, err := output.RoomFor(c, o.layout.Mesh, o.id.Size, o.cfg.Solver.MaxIterations)
	if err != nil {
		return err
	}
	if c.History != "" {
		if o.history, err = output.CreateHistory(o.place, c.History, o.id.RunID, room.History); err != nil {
			return err
		}
	}
	if c.Report != "" {
		if o.text, err = o.place.Create(c.Report, o.id.RunID, room.Report); err != nil {
			return fmt.Errorf("create report: %w", err)
		}
	}
	if c.Picture != "" {
		if o.picture, err = o.place.Create(c.Picture, o.id.RunID, room.Picture); err != nil {
			return fmt.Errorf("create picture: %w", err)
		}
	}
	if c.Field != "" {
		o.field, err = output.CreateField(o.place, c.Field, o.id.RunID, o.layout.Mesh)
	}
	return err
}

// findPlace determines where the files go. The launcher holds output.dir; without a launcher rank 0 does. A rank that
// sees that directory writes to it directly, any other rank writes over NATS.
func (o *outputs) findPlace() error {
	c := o.cfg.Output
	names := c.Names()
	if len(names) == 0 {
		return nil
	}
	if o.id.Rank == 0 && o.by != roster.ByLauncher {
		held, err := o.hold(c)
		if err != nil {
			return err
		}
		o.place = held
		if o.alone {
			return nil
		}
		serve := farfiles.Options{Conn: o.conn, RunID: o.id.RunID, Dir: held, Names: names, Log: o.log}
		stop, err := farfiles.Serve(serve)
		if err != nil {
			return err
		}
		o.onClose(func() error { stop(); return nil })
		return nil
	}
	var err error
	if o.far, err = farfiles.Find(o.team.Context(), o.conn, o.id.RunID, o.fileTimeout()); err != nil {
		return err
	}
	o.place = o.far
	if o.id.Rank == 0 && !o.far.See(c.Dir) {
		o.log.Info("outputs go over NATS", zap.String("to", o.far.Host()))
	}
	return nil
}

// hold locks output.dir for this run.
func (o *outputs) hold(c configs.Output) (*output.Held, error) {
	if err := errors.Join(output.CheckDir(c.Dir), output.CheckNames(c)); err != nil {
		return nil, err
	}
	held, notes, err := output.Hold(c.Dir, o.id.RunID)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		o.log.Info(note)
	}
	o.held = held
	o.onClose(held.Close)
	return held, nil
}

// openField opens, on all ranks, the field's file that rank 0 has created.
func (o *outputs) openField(ctx context.Context) (err error) {
	var ticket []byte
	if o.id.Rank == 0 {
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
	o.path = output.WroteFile
	o.rows, err = output.OpenField(o.cfg.Output.Dir, t)
	if errors.Is(err, output.ErrNotShared) && o.far != nil {
		o.rows, o.path, err = output.FieldIn(o.far.Open(t.File), t), output.WroteNATS+o.far.Host(), nil
	}
	return err
}

// addNorms appends norms to the history. Rank 0 calls it.
func (o *outputs) addNorms(norms []float64) error {
	if o.history == nil {
		return nil
	}
	return o.history.Add(norms...)
}

// abort removes incomplete files.
func (o *outputs) abort() {
	var errs []error
	if o.rows != nil {
		errs = append(errs, o.rows.Abandon())
	}
	if o.field != nil {
		errs = append(errs, o.field.Abort())
	}
	if o.picture != nil {
		errs = append(errs, o.picture.Abort())
	}
	if o.history != nil {
		errs = append(errs, o.history.Abort())
	}
	if o.text != nil {
		errs = append(errs, o.text.Abort())
	}
	if err := errors.Join(errs...); err != nil {
		o.log.Sugar().Warnf("remove incomplete outputs: %v", err)
	}
}
