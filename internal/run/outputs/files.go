package outputs

import (
	"errors"
	"fmt"

	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
)

// findPlace determines where the files go. The launcher holds output.dir; without a launcher rank 0 does. A rank that
// sees that directory writes to it directly, any other rank writes over NATS.
func (o *Outputs) findPlace() error {
	c := o.Config.Output
	if o.Many {
		c.Probes = "" // their values are in the report
	}
	if len(c.Names()) == 0 {
		return nil
	}
	if o.id.Rank == 0 && !o.Launched {
		return o.hold()
	}
	far, err := farfiles.Find(o.Comm.Context(), o.Conn, o.id.RunID, c.Dir, o.Timeout)
	if err == nil {
		o.place = far
	}
	return err
}

// hold locks output.dir for this run, and lets the other ranks write there.
func (o *Outputs) hold() error {
	c := o.Config.Output
	if err := errors.Join(output.CheckDir(c.Dir), output.CheckNames(c)); err != nil {
		return err
	}
	held, notes, err := output.Hold(c, o.id.RunID)
	if err != nil {
		return err
	}
	o.held, o.place = held, held
	o.OnClose(held.Close)
	for _, note := range append(notes, held.Replace()) {
		if note != "" {
			o.Log.Info(note)
		}
	}
	if o.Conn == nil {
		return nil
	}
	stop, err := farfiles.Serve(farfiles.Options{Conn: o.Conn, RunID: o.id.RunID, Dir: held, Log: o.Log})
	if err != nil {
		return err
	}
	o.OnClose(func() error { stop(); return nil })
	return nil
}

// runFiles are the files that rank 0 creates. A file that is not written is nil.
type runFiles struct {
	field   *output.Field
	picture output.File
	history *output.History
	report  output.File
	trace   output.File
}

// createFiles creates the files and reserves their maximal sizes.
func (o *Outputs) createFiles() error {
	c, f := o.Config.Output, &o.files
	hx, hy := o.Problem.Spacings()
	room, err := output.RoomFor(c, o.Layout.Mesh, hx, hy, o.id.Size, o.Config.Solver)
	if err != nil {
		return err
	}
	room.Trace = output.TraceRoom(o.Config, o.id.Size)
	create := func(what, name string, size int64) (f output.File) {
		if name == "" || err != nil {
			return nil
		}
		if f, err = o.place.Create(name, size); err != nil {
			err = fmt.Errorf("create %s: %w", what, err)
		}
		return f
	}
	f.trace = create("trace", c.Trace, room.Trace)
	if c.History != "" && err == nil {
		f.history, err = output.CreateHistory(o.place, c.History, room.History, o.Layout.Norms)
	}
	f.report = create("report", c.Report, room.Report)
	f.picture = create("picture", c.Picture, room.Picture)
	if c.Field != "" && err == nil {
		f.field, err = output.CreateField(o.place, c.Field, o.Layout.Mesh, o.fieldFormat())
	}
	return err
}

// fieldFormat returns the format of the field's file.
func (o *Outputs) fieldFormat() output.Format {
	hx, hy := o.Problem.Spacings()
	c := o.Config.Output
	return output.FieldFormat(c, o.Layout.Mesh, hx, hy, arraysOf(c, o.Problem.Porous())...)
}
