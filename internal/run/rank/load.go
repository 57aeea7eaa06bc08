package rank

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/version"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
	"jacobi/internal/run/checkpoint"
	"jacobi/solver"
)

// loaded is a run that has the field from which it goes on, and what keeps that.
type loaded struct {
	*wired
	resumed *checkpoint.State // state from which the run goes on; the zero State for the initial field
	initial solver.RowSource  // the field at sweep 0
	goal    solver.Goal
	saver   *checkpoint.Saver // nil if no state is saved
	tracer  *trace.Recorder   // nil without output.trace
}

// load loads the field into the backend and starts the saver. All ranks call it.
func (r *wired) load(ctx context.Context) (l *loaded, err error) {
	l = &loaded{wired: r}
	if l.goal, l.initial, err = r.findGoal(ctx); err != nil {
		return nil, err
	}
	if l.resumed, err = r.loadField(ctx, l.initial); err != nil {
		return nil, err
	}
	if l.goal.Base == 0 && r.firstIsBase() {
		l.goal.Base = l.resumed.First
	}
	if l.tracer, err = l.newTracer(); err != nil {
		return nil, err
	}
	l.saver, err = l.openSaver(ctx)
	return l, err
}

// identity returns what must be the same in a run that goes on from a checkpoint.
func (r *run) identity(ctx context.Context) (checkpoint.Problem, error) {
	contents, err := r.problem.Contents(ctx)
	if err != nil {
		return checkpoint.Problem{}, err
	}
	return checkpoint.NewProblem(r.Config, contents, r.problem.EdgeRule())
}

// loadField loads the initial field into the backend, or the field of the checkpoint from which the run goes on. It
// returns the state that it has loaded; its Field is closed.
func (r *wired) loadField(ctx context.Context, initial solver.RowSource) (*checkpoint.State, error) {
	if r.Config.Checkpoint.Resume == "" {
		if err := r.method.Load(ctx, initial); err != nil {
			return nil, r.onGPU(fmt.Errorf("load the initial field: %w", err))
		}
		return &checkpoint.State{}, r.onGPU(r.method.Begin(ctx, nil, 0))
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
	if err := r.method.Begin(ctx, state.Field.Direction(), state.Aggregates); err != nil {
		return nil, r.onGPU(fmt.Errorf("load the direction of %s: %w", state.Set, err))
	}
	if r.id.Rank == 0 {
		r.Log.Sugar().Infof("going on after %s %d from %s", r.Config.Solver.Step(), state.Start.Iterations-1, state.Set)
	}
	return state, nil
}

// findGoal returns the goal of the run, and the field with which it begins. Where the first norm of the run is not the
// base of the relative tolerance, the ranks sweep the masked field once for it. If that base is 0, the masked field is
// the solution, and the run begins with it. All ranks call findGoal.
func (r *wired) findGoal(ctx context.Context) (solver.Goal, solver.RowSource, error) {
	c, l := r.Config.Solver, r.layout
	goal := solver.Goal{Tolerance: c.Tolerance, Relative: c.RelativeTolerance, Blind: solver.Blind(l.Mesh, l.Magnitude),
		Unnamed: c.DefaultTolerance}
	if c.RelativeTolerance == 0 || r.firstIsBase() {
		return goal, r.problem, nil
	}
	masked := problem.Masked{Problem: r.problem}
	base, err := r.firstNorm(ctx, masked)
	if err != nil {
		return goal, nil, fmt.Errorf("rank %d: norm for solver.relative_tolerance: %w", r.id.Rank, err)
	}
	if goal.Base = base; base == 0 {
		return goal, masked, nil
	}
	return goal, r.problem, nil
}

// firstIsBase reports whether the first norm of the run is that of the masked field.
func (r *wired) firstIsBase() bool {
	return r.comm.Whole().MaxGuess == 0 && r.layout.Norms.First == 0
}

// firstNorm returns the norm of the first update of a field, over all ranks.
func (r *wired) firstNorm(ctx context.Context, field solver.RowSource) (float64, error) {
	if err := r.method.Load(ctx, field); err != nil {
		return 0, r.onGPU(err)
	}
	sum, err := r.method.FirstSum(ctx)
	if err != nil {
		return 0, r.onGPU(err)
	}
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	bits, err := roster.DecideOn(ctx, r.comm, "base", sum.AppendBinary(nil), func(parts [][]byte) (uint64, error) {
		var total solver.Sum
		for rank, part := range parts {
			s, err := solver.SumFromBinary(part)
			if err != nil {
				return 0, fmt.Errorf("of rank %d: %w", rank, err)
			}
			total.Merge(s)
		}
		return math.Float64bits(total.Norm(r.layout.Magnitude)), nil
	})
	if err != nil {
		return 0, err
	}
	norm := math.Float64frombits(bits)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, fmt.Errorf("the norm is %v", norm)
	}
	return norm, nil
}

// openSaver starts the saver; it returns nil if no states are to be saved.
func (r *loaded) openSaver(ctx context.Context) (*checkpoint.Saver, error) {
	c := r.Config.Checkpoint
	if !c.On() {
		return nil, nil
	}
	identity, err := r.identity(ctx)
	if err != nil {
		return nil, err
	}
	store, only, err := checkpoint.Open(ctx, c.Place(), r.rawConn())
	if err != nil {
		return nil, err
	}
	if only != "" {
		return nil, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, checkpoint.ErrSingle)
	}
	if c.Dir != "" && r.id.Rank == 0 && !r.launched() { // a launcher holds the directory itself
		if err := r.holdCheckpoints(c.Dir); err != nil {
			return nil, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err)
		}
	}
	if r.Task != nil {
		store = keptStore{store}
	}
	rows, arrays := r.method.State()
	options := checkpoint.SaverOptions{
		Comm: r.comm, Store: store, Layout: r.layout, Stripes: r.Stripes, Rows: rows, Arrays: arrays,
		Aggregates: r.method.Aggregates,
		Every:      c.Every.Time, Keep: c.Keep,
		RunID: r.id.RunID, Program: version.String(), Problem: identity,
		Norms: r.resumed.Norms, Base: r.goal.Base, Log: r.Log,
		Cadence: r.layout.Norms, OnSaved: r.tracer.OnSaved(),
	}
	if r.alone() {
		options.RunID += fmt.Sprint(time.Now().UnixNano()) // RunID alone is the same at every start
	}
	saver, err := checkpoint.NewSaver(ctx, options)
	if err != nil {
		return nil, err
	}
	r.open.add(saver.Close)
	return saver, nil
}

// holdCheckpoints locks the directory of the checkpoints for this run.
func (r *run) holdCheckpoints(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	lock, err := dirlock.Take(dir, r.id.RunID)
	if err != nil {
		return err
	}
	r.open.add(lock.Release)
	return nil
}

// finishSaver completes the checkpoint that is being saved.
func (r *loaded) finishSaver(ctx context.Context, result solver.Result) error {
	if r.saver == nil {
		return nil
	}
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	if err := r.saver.Finish(ctx, result); err != nil {
		return r.onGPU(fmt.Errorf("checkpoint of the last sweep: %w", err))
	}
	return nil
}

// checkpointReport describes the checkpoints of a run with this result; nil without a saver.
func (r *loaded) checkpointReport(result solver.Result) *output.CheckpointReport {
	if r.saver == nil {
		return nil
	}
	s := r.saver.Stats()
	return &output.CheckpointReport{
		Place: r.Config.Checkpoint.Place(), Written: s.Written, Failed: s.Failed, Sweeps: s.Sweeps, Bytes: s.Bytes,
		Write: s.Seconds, Copies: result.Times.Save.Seconds(),
	}
}

// keptStore is a Store that another run may be using. It keeps the incomplete checkpoints of that run.
type keptStore struct{ checkpoint.Store }

// RemoveUnsealed implements checkpoint.Store. It removes nothing.
func (keptStore) RemoveUnsealed(context.Context) error { return nil }

// newTracer returns the recorder of the run; nil without output.trace.
func (r *loaded) newTracer() (*trace.Recorder, error) {
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
