package rank

import (
	"context"
	"fmt"

	"jacobi/configs"
	"jacobi/internal/checkpoint"
	"jacobi/internal/trace"
)

// loaded is a rank whose backend holds the field from which the run goes on.
type loaded struct {
	*wired
	stages
	resumed *checkpoint.State // state from which the run goes on; the zero State for the initial field
	saver   *checkpoint.Saver // nil if no state is saved
	tracer  *trace.Recorder   // nil without output.trace
}

// load loads the field into the backend and starts the saver. All ranks call it.
func (w *wired) load(ctx context.Context, open *closers) (*loaded, error) {
	state, err := w.loadField(ctx)
	if err != nil {
		return nil, err
	}
	var coarser stages
	if w.Config.Checkpoint.Resume == "" {
		if coarser, err = w.openStages(ctx); err != nil {
			return nil, err
		}
	}
	tracer, err := w.newTracer(state.Start.Sweeps)
	if err != nil {
		return nil, err
	}
	saver, err := w.openSaver(ctx, state.Norms, tracer, open)
	if err != nil {
		return nil, err
	}
	return &loaded{wired: w, stages: coarser, resumed: state, saver: saver, tracer: tracer}, nil
}

// loadField loads the initial field into the backend, or the field of the checkpoint from which the run goes on. It
// returns the state that it has loaded; its Field is closed.
func (o *opened) loadField(ctx context.Context) (*checkpoint.State, error) {
	if o.Config.Checkpoint.Resume == "" {
		if err := o.field.Load(ctx, o.problem); err != nil {
			return nil, o.onGPU(fmt.Errorf("load the initial field: %w", err))
		}
		return &checkpoint.State{}, o.levels.loadSearch(ctx, nil)
	}
	ctx, cancel := o.withFileTimeout(ctx)
	defer cancel()
	fields, err := configs.FieldKeys(o.Config)
	if err != nil {
		return nil, err
	}
	state, err := checkpoint.Resume(ctx, checkpoint.ResumeOptions{
		Team: o.team, Place: o.Config.Checkpoint.Resume, Conn: o.rawConn(), Fields: fields, Solver: o.Config.Solver,
		Layout: o.layout, Arrays: o.arrays(), Boundary: o.problem, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	defer state.Field.Close()
	if err := o.field.Load(ctx, state.Field); err != nil {
		return nil, o.onGPU(fmt.Errorf("load the field of %s: %w", state.Set, err))
	}
	if err := o.levels.loadSearch(ctx, state.Field.Direction()); err != nil {
		return nil, o.onGPU(fmt.Errorf("load the direction of %s: %w", state.Set, err))
	}
	if o.id.Rank == 0 {
		o.Log.Sugar().Infof("going on after %s %d from %s", o.Config.Solver.Step(), state.Start.Sweeps-1, state.Set)
	}
	return state, nil
}
