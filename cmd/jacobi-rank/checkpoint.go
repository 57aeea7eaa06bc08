package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/internal/checkpoint"
	"jacobi/internal/dirlock"
	"jacobi/internal/output"
	"jacobi/internal/roster"
	"jacobi/internal/version"
	"jacobi/solver"
)

// loadField loads the initial field into the backend, or the field of the checkpoint from which the run goes on.
func (r *rank) loadField(ctx context.Context) error {
	if r.cfg.Checkpoint.Resume == "" {
		if err := r.backend.Load(ctx, r.problem); err != nil {
			return r.onGPU(fmt.Errorf("load the initial field: %w", err))
		}
		return nil
	}
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	fields, err := configs.FieldKeys(r.cfg)
	if err != nil {
		return err
	}
	state, err := checkpoint.Resume(ctx, checkpoint.ResumeOptions{
		Team: r.team, Place: r.cfg.Checkpoint.Resume, Conn: r.rawConn(), Fields: fields, Solver: r.cfg.Solver,
		Layout: r.layout, Boundary: r.problem, Log: r.log,
	})
	if err != nil {
		return err
	}
	defer state.Field.Close()
	if err := r.backend.Load(ctx, state.Field); err != nil {
		return r.onGPU(fmt.Errorf("load the field of %s: %w", state.Set, err))
	}
	r.resumed = state
	if r.id.Rank == 0 {
		r.log.Sugar().Infof("going on after sweep %d from %s", state.Start.Sweeps-1, state.Set)
	}
	return nil
}

// rawConn returns the connection for messages that do not belong to the run; nil for a rank alone.
func (r *rank) rawConn() *nats.Conn {
	if c, ok := r.conn.(interface{ Raw() *nats.Conn }); ok {
		return c.Raw()
	}
	return nil
}

// openSaver starts the saver if states are to be saved.
func (r *rank) openSaver(ctx context.Context) error {
	c := r.cfg.Checkpoint
	if !c.On() {
		return nil
	}
	fields, err := configs.FieldKeys(r.cfg)
	if err != nil {
		return err
	}
	if c.Dir != "" && r.id.Rank == 0 && r.by != roster.ByLauncher { // a launcher holds the directory itself
		if err := r.holdCheckpoints(c.Dir); err != nil {
			return fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err)
		}
	}
	store, _, err := checkpoint.Open(ctx, c.Place(), r.rawConn())
	if err != nil {
		return err
	}
	if r.node != nil {
		store = keptStore{store}
	}
	o := checkpoint.SaverOptions{
		Team: r.team, Store: store, Layout: r.layout, Stripes: r.stripes, Rows: r.backend, Every: c.Every.Time,
		Keep:  c.Keep,
		RunID: r.id.RunID, Program: version.String(), Fields: fields, Norms: r.resumed.Norms, Log: r.log,
	}
	if r.alone {
		o.RunID += fmt.Sprint(time.Now().UnixNano()) // RunID alone is the same at every start
	}
	if r.saver, err = checkpoint.NewSaver(ctx, o); err != nil {
		return err
	}
	r.onClose(r.saver.Close)
	return nil
}

// holdCheckpoints locks the directory of the checkpoints for this run.
func (r *rank) holdCheckpoints(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	lock, err := dirlock.Take(dir, r.id.RunID)
	if err != nil {
		return err
	}
	r.onClose(lock.Release)
	return nil
}

// solverSaver returns the saver as a solver.Saver: a nil interface, not a nil *checkpoint.Saver, if there is none.
func (r *rank) solverSaver() solver.Saver {
	if r.saver == nil {
		return nil
	}
	return r.saver
}

// finishSaver completes the checkpoint that is being saved.
func (r *rank) finishSaver(ctx context.Context, result solver.Result) error {
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

// checkpointReport describes the checkpoints; nil without a saver. Rank 0 calls it.
func (r *rank) checkpointReport(times solver.Times) *output.CheckpointReport {
	if r.saver == nil {
		return nil
	}
	s := r.saver.Stats()
	return &output.CheckpointReport{
		Place: r.cfg.Checkpoint.Place(), Written: s.Written, Failed: s.Failed, Sweeps: s.Sweeps, Bytes: s.Bytes,
		Write: s.Took.Seconds(), Copies: times.Save.Seconds(),
	}
}
