package outputs

import (
	"fmt"

	"jacobi/internal/observe/output"
)

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
