package outputs

import (
	"errors"
	"fmt"

	"jacobi/internal/observe/output"
)

// runFiles are the files that rank 0 creates. A file that is not written is nil.
type runFiles struct {
	field   *output.Field
	picture output.Partial
	history *output.History
	report  output.Partial
	trace   output.Partial
}

// createFiles creates the files and reserves their maximal sizes. With an error it returns those that it has created.
func (o *Outputs) createFiles(place output.Place) (f runFiles, err error) {
	c := o.Config.Output
	hx, hy := o.Problem.Spacings()
	room, err := output.RoomFor(c, o.Layout.Mesh, hx, hy, o.id.Size, o.Config.Solver)
	if err != nil {
		return f, err
	}
	room.Trace = output.TraceRoom(o.Config, o.id.Size)
	if c.Trace != "" {
		if f.trace, err = place.Create(c.Trace, o.id.RunID, room.Trace); err != nil {
			return f, fmt.Errorf("create trace: %w", err)
		}
	}
	if c.History != "" {
		f.history, err = output.CreateHistory(place, c.History, o.id.RunID, room.History, o.Layout.Norms)
		if err != nil {
			return f, err
		}
	}
	if c.Report != "" {
		if f.report, err = place.Create(c.Report, o.id.RunID, room.Report); err != nil {
			return f, fmt.Errorf("create report: %w", err)
		}
	}
	if c.Picture != "" {
		if f.picture, err = place.Create(c.Picture, o.id.RunID, room.Picture); err != nil {
			return f, fmt.Errorf("create picture: %w", err)
		}
	}
	if c.Field != "" {
		f.field, err = output.CreateField(place, c.Field, o.id.RunID, o.Layout.Mesh, o.fieldFormat())
	}
	return f, err
}

// fieldFormat returns the format of the field's file.
func (o *Outputs) fieldFormat() output.Format {
	hx, hy := o.Problem.Spacings()
	c := o.Config.Output
	return output.FieldFormat(c, o.Layout.Mesh, hx, hy, arraysOf(c, o.Problem.Porous())...)
}

// abort removes the files that are incomplete.
func (f *runFiles) abort() error {
	var errs []error
	if f.field != nil {
		errs = append(errs, f.field.Abort())
	}
	if f.history != nil {
		errs = append(errs, f.history.Abort())
	}
	for _, p := range []output.Partial{f.picture, f.report, f.trace} {
		if p != nil {
			errs = append(errs, p.Abort())
		}
	}
	return errors.Join(errs...)
}
