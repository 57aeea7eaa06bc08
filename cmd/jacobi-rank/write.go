package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"jacobi/internal/output"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// write writes all files and publishes the report. If a file cannot be written, the report says so, and the others are
// written all the same.
func (o *outputs) write(ctx context.Context, result solver.Result) error {
	begin := time.Now()
	ctx, cancel := o.withFileTimeout(ctx)
	defer cancel()
	view := output.View{Mesh: o.layout.Mesh, Stripe: o.layout.Stripe, Rows: o.backend, Initial: o.problem}
	picture, err := o.writeRows(ctx, view)
	if err != nil {
		return err
	}
	digest, err := o.digest(ctx, view)
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
	rows, file := digest.Sums()
	report, err := o.report(result, parts, rows)
	if err != nil {
		return err
	}
	s := &outputSet{outputs: o, report: &report}
	if err := s.finish(picture, file, begin); err != nil {
		return err
	}
	o.finished = &report
	return o.publish(report)
}

// writeRows writes this rank's rows to the field and averages them for the picture. On rank 0 it returns the whole
// picture.
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
			if c.Field != "" && o.rowFault == nil {
				o.rowFault = o.rows.WriteRows(lo, rows)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if o.rows != nil {
		if err := o.rows.Close(); o.rowFault == nil {
			o.rowFault = err
		}
		o.rows = nil
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

// digest passes the hash of the field from rank to rank and returns it on rank 0.
func (o *outputs) digest(ctx context.Context, view output.View) (*output.Digest, error) {
	withFile := o.cfg.Output.Field != ""
	var first, last []byte
	var err error
	if withFile {
		if first, last, err = o.boundaryRows(ctx, view); err != nil {
			return nil, err
		}
	}
	state, err := o.team.Relay(ctx, "hash", func(state []byte) ([]byte, error) {
		d, err := output.NewDigest(state)
		if err != nil {
			return nil, err
		}
		if withFile && o.id.Rank == 0 {
			d.Begin(view.Mesh, first)
		}
		if err := d.AddRows(ctx, view, withFile); err != nil {
			return nil, err
		}
		if withFile && o.id.Rank == o.id.Size-1 {
			d.End(last)
		}
		return d.State()
	})
	if err != nil || o.id.Rank != 0 {
		return nil, err
	}
	return output.NewDigest(state)
}

// boundaryRows returns row 0 on the first rank and row NY-1 on the last. If these rows are periodic, each of the two
// ranks gets its row from the other.
func (o *outputs) boundaryRows(ctx context.Context, view output.View) (first, last []byte, err error) {
	if first, err = view.Boundary(ctx, 0); err != nil {
		return nil, nil, err
	}
	if last, err = view.Boundary(ctx, view.Mesh.NY-1); err != nil {
		return nil, nil, err
	}
	if !view.Mesh.PeriodicRows() || o.id.Size == 1 {
		return first, last, nil
	}
	switch o.id.Rank {
	case 0:
		if err = o.sendRow(ctx, o.id.Size-1, last); err == nil {
			first, err = o.receiveRow(ctx, o.id.Size-1)
		}
	case o.id.Size - 1:
		row := first
		if last, err = o.receiveRow(ctx, 0); err == nil {
			err = o.sendRow(ctx, 0, row)
		}
	}
	return first, last, err
}

const rowTag = "boundary row"

func (o *outputs) sendRow(ctx context.Context, to int, row []byte) error {
	for part := range slices.Chunk(row, roster.MaxMessage) {
		if err := o.team.Send(ctx, to, rowTag, part); err != nil {
			return err
		}
	}
	return nil
}

func (o *outputs) receiveRow(ctx context.Context, from int) (row []byte, err error) {
	for len(row) < o.layout.Mesh.RowBytes() {
		part, err := o.team.Recv(ctx, from, rowTag)
		if err != nil {
			return nil, err
		}
		row = append(row, part...)
	}
	return row, nil
}

// outputSet completes rank 0's files. It is used once all ranks have written their rows and sent their reports.
type outputSet struct {
	*outputs
	report *output.Report
	files  []string // partial files that are complete and durable
}

// finish completes the files and puts them in place together. Small files come first: on a full disk the field is
// removed to make room for them.
func (s *outputSet) finish(picture *output.Thumbnail, fieldSum string, begin time.Time) error {
	c := s.cfg.Output
	s.finishHistory()
	if s.picture != nil {
		caption := output.Caption{
			Title: s.problem.Name(), Sweeps: s.report.Sweeps, Norm: *s.report.Norm, Scale: c.PictureScale,
			Stalled:     s.report.StopReason == solver.Stalled,
			Interrupted: s.report.StopReason == solver.Interrupted,
		}
		done, err := output.WritePicture(s.picture, c.Picture, picture, caption)
		s.record(s.picture.File(), c.Picture, done, err)
	}
	s.finishField(fieldSum)
	s.report.Ended = time.Now()
	s.report.Times.Output = s.report.Ended.Sub(begin).Seconds()
	s.finishReport()
	if len(s.files) == 0 {
		return nil
	}
	if err := s.place.Commit(s.files); err != nil {
		return err
	}
	if s.field != nil {
		return s.field.Close()
	}
	return nil
}

// record adds a file to the set, or its error to the report.
func (s *outputSet) record(file, name string, done output.FileReport, err error) {
	if err != nil {
		s.failed(name, err)
		return
	}
	s.files = append(s.files, file)
	s.report.Files = append(s.report.Files, done)
}

func (s *outputSet) failed(name string, err error) {
	s.log.Sugar().Errorf("%s is not written: %v", name, err)
	s.report.Failed = append(s.report.Failed, output.FileFault{Name: name, Error: err.Error()})
}

// giveWay removes the field to make room for a smaller file. It reports whether that made room.
func (s *outputSet) giveWay(to string) bool {
	if s.field == nil {
		return false
	}
	name, file := s.cfg.Output.Field, s.field.File()
	s.files = slices.DeleteFunc(s.files, func(f string) bool { return f == file })
	s.report.Files = slices.DeleteFunc(s.report.Files, func(f output.FileReport) bool { return f.Name == name })
	err := s.field.Abort()
	s.field = nil
	s.failed(name, errors.Join(fmt.Errorf("the disk is full, and it gave way to the %s", to), err))
	return err == nil
}

func (s *outputSet) finishHistory() {
	if s.history == nil {
		return
	}
	done, err := s.history.Finish()
	if output.IsFull(err) && s.giveWay("history") {
		done, err = s.history.Finish()
	}
	s.record(s.history.File(), s.cfg.Output.History, done, err)
}

func (s *outputSet) finishField(sum string) {
	if s.field == nil {
		return
	}
	name := s.cfg.Output.Field
	for _, k := range s.report.Ranks {
		if k.OutputError != "" {
			s.failed(name, fmt.Errorf("rank %d on %s: %s", k.Rank, k.Host, k.OutputError))
			return
		}
	}
	done := output.FileReport{Name: name, Bytes: s.field.Ticket().Size, SHA256: sum}
	s.record(s.field.File(), name, done, s.field.Finish())
}

// finishReport writes the report, which lists the files that were written and those that were not.
func (s *outputSet) finishReport() {
	if s.text == nil {
		return
	}
	name := s.cfg.Output.Report
	err := output.WriteReport(s.text, s.report.With(name))
	if output.IsFull(err) && s.giveWay("report") {
		err = s.text.Abort()
		if err == nil {
			s.text, err = s.place.Create(name, s.id.RunID, 0)
		}
		if err == nil {
			err = output.WriteReport(s.text, s.report.With(name))
		}
	}
	s.record(s.text.File(), name, output.FileReport{Name: name}, err)
}

// publish sends the report to the launcher.
func (o *outputs) publish(report output.Report) error {
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return o.team.Publish(roster.Event{Kind: roster.Finished, Report: b})
}
