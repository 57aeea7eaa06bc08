package rank

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda"
	"jacobi/internal/base/version"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
	"jacobi/solver"
)

// newTracer returns the recorder of the run; nil without output.trace.
func (r *run) newTracer() (*trace.Recorder, error) {
	if r.Config.Output.Trace == "" {
		return nil, nil
	}
	t := r.Config.Trace
	tracer := trace.New(trace.Options{Passes: t.Passes, From: t.From, To: t.To, Cycles: r.levels != nil,
		Done: r.resumed.Start.Sweeps})
	r.links.Observe(tracer.OnTransfer())
	gpu, ok := r.field.(timed)
	if r.levels != nil {
		gpu, ok = r.levels.device.(timed)
	}
	if !ok {
		return tracer, nil
	}
	timeline, err := gpu.Timeline(t.Passes, tracer.OnWork)
	if err != nil {
		return nil, r.onGPU(fmt.Errorf("%s: events for the work of the GPU: %w", r.Config.Output.Trace, err))
	}
	tracer.Watch(timeline)
	return tracer, nil
}

// timed is a backend, or a device of multigrid, that times its work.
type timed interface {
	Timeline(keep int, on solver.OnWork) (*cuda.Timeline, error)
}

// sendTrace sends this rank's part of the trace to rank 0. If that fails, rank 0 writes no trace.
func (r *run) sendTrace(ctx context.Context) {
	if r.trace == nil {
		return
	}
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	if err := r.trace.Send(ctx); err != nil {
		r.Log.Sugar().Warnf("this rank'r part of the trace: %v", err)
	}
}

// finishTrace writes the trace of all ranks. If that fails, the run has everything else.
func (s *outputSet) finishTrace(ctx context.Context) {
	if s.files.trace == nil {
		return
	}
	ctx, cancel := s.withFileTimeout(ctx)
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
		err = errors.Join(err, s.files.trace.Abort())
		s.Log.Sugar().Warnf("%s is not written: %v", name, err)
		s.report.Trace.Error = err.Error()
		return
	}
	s.record(s.files.trace.File(), name, done, nil)
}
