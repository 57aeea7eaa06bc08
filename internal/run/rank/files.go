package rank

import (
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
func (r *run) createFiles(place output.Place) (f runFiles, err error) {
	c := r.Config.Output
	hx, hy := r.problem.Spacings()
	room, err := output.RoomFor(c, r.layout.Mesh, hx, hy, r.id.Size, r.Config.Solver)
	if err != nil {
		return f, err
	}
	room.Trace = output.TraceRoom(r.Config, r.id.Size)
	if c.Trace != "" {
		if f.trace, err = place.Create(c.Trace, r.id.RunID, room.Trace); err != nil {
			return f, fmt.Errorf("create trace: %w", err)
		}
	}
	if c.History != "" {
		f.history, err = output.CreateHistory(place, c.History, r.id.RunID, room.History, r.layout.Norms)
		if err != nil {
			return f, err
		}
	}
	if c.Report != "" {
		if f.report, err = place.Create(c.Report, r.id.RunID, room.Report); err != nil {
			return f, fmt.Errorf("create report: %w", err)
		}
	}
	if c.Picture != "" {
		if f.picture, err = place.Create(c.Picture, r.id.RunID, room.Picture); err != nil {
			return f, fmt.Errorf("create picture: %w", err)
		}
	}
	if c.Field != "" {
		f.field, err = output.CreateField(place, c.Field, r.id.RunID, r.layout.Mesh, r.fieldFormat())
	}
	return f, err
}

// fieldFormat returns the format of the field's file.
func (r *run) fieldFormat() output.Format {
	hx, hy := r.problem.Spacings()
	return output.FieldFormat(r.Config.Output, r.layout.Mesh, hx, hy)
}

// abort removes the files that are incomplete.
func (f *runFiles) abort() (errs []error) {
	if f.field != nil {
		errs = append(errs, f.field.Abort())
	}
	if f.picture != nil {
		errs = append(errs, f.picture.Abort())
	}
	if f.history != nil {
		errs = append(errs, f.history.Abort())
	}
	if f.report != nil {
		errs = append(errs, f.report.Abort())
	}
	if f.trace != nil {
		errs = append(errs, f.trace.Abort())
	}
	return errs
}
