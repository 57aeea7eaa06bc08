package rank

import (
	"context"
	"fmt"

	"jacobi/configs"
	"jacobi/internal/observe/trace"
	"jacobi/internal/run/checkpoint"
	"jacobi/solver"
)

// state is the field from which the run goes on, and what keeps it.
type state struct {
	resumed *checkpoint.State // state from which the run goes on; the zero State for the initial field
	initial solver.RowSource  // the field at sweep 0
	goal    solver.Goal
	saver   *checkpoint.Saver // nil if no state is saved
	tracer  *trace.Recorder   // nil without output.trace
}

// load loads the field into the backend and starts the saver. All ranks call it.
func (r *run) load(ctx context.Context) (err error) {
	if r.goal, r.initial, err = r.findGoal(ctx); err != nil {
		return err
	}
	if r.resumed, err = r.loadField(ctx, r.initial); err != nil {
		return err
	}
	if r.goal.Base == 0 && r.firstIsBase() {
		r.goal.Base = r.resumed.First
	}
	if r.tracer, err = r.newTracer(); err != nil {
		return err
	}
	r.saver, err = r.openSaver(ctx)
	return err
}

// identity returns what must be the same in a run that goes on from a checkpoint.
func (r *run) identity(ctx context.Context) (checkpoint.Problem, error) {
	fields, err := configs.FieldKeys(r.Config)
	if err != nil {
		return checkpoint.Problem{}, err
	}
	contents, err := r.problem.Contents(ctx)
	return checkpoint.Problem{Fields: fields, Contents: contents}, err
}

// loadField loads the initial field into the backend, or the field of the checkpoint from which the run goes on. It
// returns the state that it has loaded; its Field is closed.
func (r *run) loadField(ctx context.Context, initial solver.RowSource) (*checkpoint.State, error) {
	if r.Config.Checkpoint.Resume == "" {
		if err := r.method.Load(ctx, initial); err != nil {
			return nil, r.onGPU(fmt.Errorf("load the initial field: %w", err))
		}
		return &checkpoint.State{}, r.onGPU(r.method.Begin(ctx, nil))
	}
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	identity, err := r.identity(ctx)
	if err != nil {
		return nil, err
	}
	_, arrays := r.method.State()
	state, err := checkpoint.Resume(ctx, checkpoint.ResumeOptions{
		Comm: r.comm, Place: r.Config.Checkpoint.Resume, Conn: r.rawConn(), Problem: identity, Solver: r.Config.Solver,
		Layout: r.layout, Arrays: arrays, Boundary: r.problem, Log: r.Log,
	})
	if err != nil {
		return nil, err
	}
	defer state.Field.Close()
	if err := r.method.Load(ctx, state.Field); err != nil {
		return nil, r.onGPU(fmt.Errorf("load the field of %s: %w", state.Set, err))
	}
	if err := r.method.Begin(ctx, state.Field.Direction()); err != nil {
		return nil, r.onGPU(fmt.Errorf("load the direction of %s: %w", state.Set, err))
	}
	if r.id.Rank == 0 {
		r.Log.Sugar().Infof("going on after %s %d from %s", r.Config.Solver.Step(), state.Start.Iterations-1, state.Set)
	}
	return state, nil
}
