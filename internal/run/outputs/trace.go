package outputs

import (
	"context"
	"errors"

	"jacobi/internal/base/version"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
)

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
