package outputs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jacobi/internal/base/version"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
)

// outputSet completes rank 0's files. It is used once all ranks have written their rows and sent their reports.
type outputSet struct {
	*Outputs
	report *output.Report
	done   []string // files that are complete and durable
}

// finish completes the files and puts them in place together. Small files come first: on a full disk the field is
// removed to make room for them.
func (s *outputSet) finish(ctx context.Context, picture drawing, begin time.Time) error {
	s.finishHistory()
	if s.files.picture != nil {
		s.finishPicture(picture)
	}
	s.finishField()
	s.finishArrays()
	s.finishTrace(ctx)
	s.report.Ended = time.Now()
	s.report.Times.Output = s.report.Ended.Sub(begin).Seconds()
	s.finishReport()
	if len(s.done) == 0 {
		return nil
	}
	if !s.Many {
		s.given = true
		return s.place.Commit(s.done)
	}
	for _, name := range s.done {
		if err := s.place.Put(name); err != nil {
			return err
		}
	}
	s.given = true
	return nil
}

// finishPicture writes the picture, once it is drawn.
func (s *outputSet) finishPicture(drawn drawing) {
	defer s.Tracer.Phase(trace.PhasePicture, time.Now())
	data, err := drawn()
	var done output.FileReport
	if err == nil {
		done, err = output.WritePicture(s.files.picture, s.Config.Output.Picture, data)
	}
	s.record(s.Config.Output.Picture, done, err)
}

// record adds a file to the set, or its error to the report.
func (s *outputSet) record(name string, done output.FileReport, err error) {
	if err != nil {
		s.failed(name, err)
		return
	}
	s.done = append(s.done, name)
	s.report.Files = append(s.report.Files, done)
}

// failed enters in the report that a file is not written.
func (s *outputSet) failed(name string, err error) {
	s.Log.Sugar().Errorf("%s is not written: %v", name, err)
	s.report.Failed = append(s.report.Failed, output.FileFault{Name: name, Error: err.Error()})
}

// giveWay removes the field to make room for a smaller file. It reports whether that made room.
func (s *outputSet) giveWay(to string) bool {
	if s.files.field == nil {
		return false
	}
	name := s.Config.Output.Field
	s.done = slices.DeleteFunc(s.done, func(f string) bool { return f == name })
	s.report.Files = slices.DeleteFunc(s.report.Files, func(f output.FileReport) bool { return f.Name == name })
	err := s.files.field.Abort()
	s.files.field = nil
	s.failed(name, errors.Join(fmt.Errorf("the disk is full; left out to make room for the %s", to), err))
	return err == nil
}

// finishHistory completes the history of norms.
func (s *outputSet) finishHistory() {
	if s.files.history == nil {
		return
	}
	defer s.Tracer.Phase(trace.PhaseHistory, time.Now())
	s.small("history", s.Config.Output.History, s.files.history.Finish)
}

// small records a file that finish completes: on a full disk once the field has made room for it.
func (s *outputSet) small(what, name string, finish func() (output.FileReport, error)) {
	done, err := finish()
	if output.IsFull(err) && s.giveWay(what) {
		done, err = finish()
	}
	s.record(name, done, err)
}

// finishField completes the field, if all ranks have written their rows.
func (s *outputSet) finishField() {
	if s.files.field == nil {
		return
	}
	defer s.Tracer.Phase(trace.PhaseField, time.Now())
	name := s.Config.Output.Field
	for _, k := range s.report.Ranks {
		if k.OutputError != "" {
			s.failed(name, fmt.Errorf("rank %d on %s: %s", k.Rank, k.Host, k.OutputError))
			return
		}
	}
	done := output.FileReport{Name: name, Bytes: s.files.field.Tickets[0].Size}
	s.record(name, done, s.files.field.Finish())
}

// finishArrays completes the arrays that have files of their own, if the field is complete.
func (s *outputSet) finishArrays() {
	for _, a := range s.arrays {
		name := s.Config.Output.ArrayFile(a.Name)
		switch {
		case a.file == nil:
		case !slices.ContainsFunc(s.report.Files, func(f output.FileReport) bool {
			return f.Name == s.Config.Output.Field
		}):
			s.failed(name, errors.New("the field is not written"))
		default:
			done := output.FileReport{Name: name, Bytes: a.file.Tickets[0].Size}
			s.record(name, done, a.file.Finish())
		}
	}
}

// finishReport writes the report, which lists the files that were written and those that were not.
func (s *outputSet) finishReport() {
	if s.files.report == nil {
		return
	}
	name := s.Config.Output.Report
	s.small("report", name, func() (output.FileReport, error) {
		return output.FileReport{Name: name}, output.WriteReport(s.files.report, s.report.With(name))
	})
}

// sendTrace sends this rank's part of the trace to rank 0. If that fails, rank 0 writes no trace.
func (o *Outputs) sendTrace(ctx context.Context) {
	if o.trace == nil {
		return
	}
	ctx, cancel := o.within(ctx)
	defer cancel()
	if err := o.trace.Send(ctx); err != nil {
		o.Log.Sugar().Warnf("this rank's part of the trace: %v", err)
	}
}

// finishTrace writes the trace of all ranks. If that fails, the run has everything else.
func (s *outputSet) finishTrace(ctx context.Context) {
	if s.files.trace == nil {
		return
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	name, file := s.Config.Output.Trace, output.NewSummed(s.files.trace, s.Config.Output.Trace)
	var ranks []trace.Name
	for _, r := range s.report.Ranks {
		ranks = append(ranks, trace.Name{Host: r.Host, Device: r.Device})
	}
	about := trace.About{Program: "jacobi " + version.String(), Run: s.Config.Run.Name, RunID: s.id.RunID,
		Method: s.Config.Solver.Method}
	s.report.Trace = &output.TraceReport{}
	var err error
	s.report.Trace.Passes, s.report.Trace.Dropped, err = s.trace.Write(ctx, file, about, ranks)
	var done output.FileReport
	if err == nil {
		done, err = file.Finish()
	}
	if err != nil {
		err = errors.Join(err, s.place.Remove(name))
		s.Log.Sugar().Warnf("%s is not written: %v", name, err)
		s.report.Trace.Error = err.Error()
		return
	}
	s.record(name, done, nil)
}
