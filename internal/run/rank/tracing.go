package rank

import (
	"fmt"

	"jacobi/internal/observe/trace"
)

// newTracer returns the recorder of the run; nil without output.trace.
func (r *run) newTracer() (*trace.Recorder, error) {
	if r.Config.Output.Trace == "" {
		return nil, nil
	}
	t := r.Config.Trace
	tracer := trace.New(trace.Options{Passes: t.Passes, From: t.From, To: t.To, Cycles: r.Levels != nil,
		Done: r.resumed.Start.Iterations})
	r.links.Observe(tracer.OnTransfer())
	gpu := r.method.About().GPU
	if gpu == nil {
		return tracer, nil
	}
	timeline, err := gpu.Timeline(t.Passes, tracer.OnWork)
	if err != nil {
		return nil, r.onGPU(fmt.Errorf("%s: events for the work of the GPU: %w", r.Config.Output.Trace, err))
	}
	tracer.Watch(timeline)
	return tracer, nil
}
