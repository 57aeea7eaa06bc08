package rank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/cuda"
	"jacobi/internal/output"
	"jacobi/internal/roster"
	"jacobi/internal/trace"
	"jacobi/internal/version"
	"jacobi/solver"
)

// traceTag is that of a rank's part of the trace.
const traceTag = "trace"

// newTracer returns the recorder of a run of which the given number of sweeps, or cycles, is done; nil without
// output.trace.
func (w *wired) newTracer(done int) (*trace.Recorder, error) {
	if w.Config.Output.Trace == "" {
		return nil, nil
	}
	t := w.Config.Trace
	tracer := trace.New(trace.Options{Passes: t.Passes, From: t.From, To: t.To, Cycles: w.Config.Solver.Multigrid(),
		Done: done})
	w.links.Observe(tracer.OnTransfer())
	gpu, ok := w.field.(timed)
	if w.levels != nil {
		gpu, ok = w.levels.device.(timed)
	}
	if !ok {
		return tracer, nil
	}
	timeline, err := gpu.Timeline(t.Passes, tracer.OnWork)
	if err != nil {
		return nil, w.onGPU(fmt.Errorf("%s: events for the work of the GPU: %w", w.Config.Output.Trace, err))
	}
	tracer.Watch(timeline)
	return tracer, nil
}

// timed is a backend, or a device of multigrid, that times its work.
type timed interface {
	Timeline(keep int, on solver.OnWork) (*cuda.Timeline, error)
}

// traceBegin is what a rank knows at the beginning of a trace.
type traceBegin struct {
	at    time.Time
	zero  int64         // the beginning of the trace, on rank 0
	clock trace.Reading // of a rank that compares its clock
}

// beginTrace compares the clocks of the nodes and returns when the trace begins. All ranks call it before they sweep.
func (l *loaded) beginTrace(ctx context.Context) (b traceBegin, err error) {
	if l.tracer == nil {
		return b, nil
	}
	b.clock, err = l.compareClocks(ctx)
	b.at, b.zero = time.Now(), l.tracer.Now()
	if err == nil {
		l.tracer.Start()
	}
	return b, err
}

// compareClocks compares the clocks of all kernels on which ranks run with that of rank 0. All ranks call it. The ranks
// that compare get a reading.
func (l *loaded) compareClocks(ctx context.Context) (reading trace.Reading, err error) {
	of := clockOf(l.team.Members())
	if self := l.id.Rank; self > 0 {
		if of[self] != self {
			return reading, nil
		}
		ahead, bound, err := l.compareClock(ctx, l.tracer.Now)
		return trace.Reading{At: l.tracer.Now(), Ahead: int64(ahead), Error: int64(bound)}, err
	}
	for rank, by := range of {
		if rank > 0 && by == rank {
			if err := l.tellTime(ctx, rank, l.tracer.Now); err != nil {
				return reading, err
			}
		}
	}
	return reading, nil
}

// clockOf returns, by rank, the first rank under the same kernel. Ranks under one kernel have one clock.
func clockOf(members []roster.Member) []int {
	of, first := make([]int, len(members)), map[string]int{}
	for rank, m := range members {
		of[rank] = rank
		if m.Node.Boot == "" {
			continue
		}
		if by, ok := first[m.Node.Boot]; ok {
			of[rank] = by
		} else {
			first[m.Node.Boot] = rank
		}
	}
	return of
}

// tracePart returns what this rank has recorded.
func (r *ready) tracePart(ctx context.Context) (trace.Part, error) {
	after, err := r.compareClocks(ctx)
	if err != nil {
		return trace.Part{}, err
	}
	p, err := r.tracer.Part(ctx)
	p.Clock = trace.Clock{Before: r.began.clock, After: after}
	return p, err
}

// sendTrace sends this rank's part of the trace to rank 0. If that fails, rank 0 writes no trace.
func (s *solved) sendTrace(ctx context.Context) {
	if s.tracer == nil {
		return
	}
	ctx, cancel := s.withFileTimeout(ctx)
	defer cancel()
	p, err := s.tracePart(ctx)
	var data []byte
	if err == nil {
		data, err = p.Encode()
	}
	if err == nil {
		err = s.team.Send(ctx, 0, traceTag, data)
	}
	if err != nil {
		s.Log.Sugar().Warnf("this rank's part of the trace: %v", err)
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
	s.report.Trace = &output.TraceReport{}
	err := s.writeTrace(ctx, file)
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

// writeTrace writes the parts of all ranks, one after the other. It takes those of all ranks even if it cannot write
// them, because the ranks wait for that.
func (s *outputSet) writeTrace(ctx context.Context, file *output.Summed) error {
	own, err := s.tracePart(ctx)
	if err != nil {
		return err
	}
	s.report.Trace.Passes, s.report.Trace.Dropped = own.Passes, own.Dropped
	about := trace.About{Program: "jacobi " + version.String(), Run: s.Config.Run.Name, RunID: s.id.RunID,
		Begin: s.began.at.Format(time.RFC3339Nano), Method: s.Config.Solver.Method,
		Passes: own.Passes, Dropped: own.Dropped}
	w, of := trace.NewWriter(file, s.began.zero, s.id.Size), clockOf(s.team.Members())
	nodes := map[int]int{} // index in about.Clocks of the node whose clock a rank has compared
	for rank, by := range of {
		part := own
		if rank > 0 {
			data, receiveErr := s.team.Recv(ctx, rank, traceTag)
			if receiveErr == nil {
				part, receiveErr = trace.Decode(data)
			}
			if receiveErr != nil {
				err = errors.Join(err, fmt.Errorf("part of rank %d: %w", rank, receiveErr))
				continue
			}
		}
		if by == rank {
			nodes[rank] = len(about.Clocks)
			about.Clocks = append(about.Clocks, trace.NodeClock{Host: s.report.Ranks[rank].Host, Clock: part.Clock,
				Drifts: part.Clock.Drifts()})
		}
		if part.DeviceError > 0 {
			about.GPUs = append(about.GPUs, trace.GPUClock{Rank: rank, Error: part.DeviceError})
		}
		node := &about.Clocks[nodes[by]]
		node.Ranks = append(node.Ranks, rank)
		if writeErr := w.Rank(s.process(rank), part, node.Clock); err == nil {
			err = writeErr
		}
	}
	if err != nil {
		return err
	}
	return w.Close(about)
}

// process returns what the trace says about a rank.
func (s *outputSet) process(rank int) trace.Process {
	r, size := s.report.Ranks[rank], s.id.Size
	return trace.Process{Rank: rank, Name: fmt.Sprintf("rank %d on %s: %s", rank, r.Host, r.Device),
		Beside: [2]int{solver.Top: (rank - 1 + size) % size, solver.Bottom: (rank + 1) % size}}
}
