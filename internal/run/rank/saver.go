package rank

import (
	"context"
	"fmt"
	"os"
	"time"

	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/version"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/checkpoint"
	"jacobi/solver"
)

// openSaver starts the saver; it returns nil if no states are to be saved.
func (r *run) openSaver(ctx context.Context) (*checkpoint.Saver, error) {
	c := r.Config.Checkpoint
	if !c.On() {
		return nil, nil
	}
	identity, err := r.identity(ctx)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" && r.id.Rank == 0 && !r.launched() { // a launcher holds the directory itself
		if err := r.holdCheckpoints(c.Dir); err != nil {
			return nil, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err)
		}
	}
	store, _, err := checkpoint.Open(ctx, c.Place(), r.rawConn())
	if err != nil {
		return nil, err
	}
	if r.Task != nil {
		store = keptStore{store}
	}
	rows, arrays := r.method.State()
	options := checkpoint.SaverOptions{
		Comm: r.comm, Store: store, Layout: r.layout, Stripes: r.Stripes, Rows: rows, Arrays: arrays,
		Every: c.Every.Time, Keep: c.Keep,
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

// solverSaver returns the saver as a solver.Saver: a nil interface, not a nil *checkpoint.Saver, if there is none.
func (s *state) solverSaver() solver.Saver {
	if s.saver == nil {
		return nil
	}
	return s.saver
}

// finishSaver completes the checkpoint that is being saved.
func (r *run) finishSaver(ctx context.Context, result solver.Result) error {
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

// checkpointReport describes the checkpoints; nil without a saver.
func (r *run) checkpointReport() *output.CheckpointReport {
	if r.saver == nil {
		return nil
	}
	s := r.saver.Stats()
	return &output.CheckpointReport{
		Place: r.Config.Checkpoint.Place(), Written: s.Written, Failed: s.Failed, Sweeps: s.Sweeps, Bytes: s.Bytes,
		Write: s.Seconds, Copies: r.result.Times.Save.Seconds(),
	}
}

// keptStore is a Store that another run may be using. It keeps the incomplete checkpoints of that run.
type keptStore struct{ checkpoint.Store }

// RemoveUnsealed implements checkpoint.Store. It removes nothing.
func (keptStore) RemoveUnsealed(context.Context) error { return nil }
