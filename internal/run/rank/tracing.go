package rank

import (
	"fmt"

	"jacobi/cuda"
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
