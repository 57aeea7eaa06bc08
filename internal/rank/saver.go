package rank

import (
	"context"
	"fmt"
	"os"
	"time"

	"jacobi/configs"
	"jacobi/internal/checkpoint"
	"jacobi/internal/dirlock"
	"jacobi/internal/output"
	"jacobi/internal/trace"
	"jacobi/internal/version"
	"jacobi/solver"
)

// openSaver starts the saver; it returns nil if no states are to be saved. norms are those of the sweeps before the
// start.
func (o *opened) openSaver(ctx context.Context, norms []float64, tracer *trace.Recorder, open *closers) (
	*checkpoint.Saver, error) {
	c := o.Config.Checkpoint
	if !c.On() {
		return nil, nil
	}
	fields, err := configs.FieldKeys(o.Config)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" && o.id.Rank == 0 && !o.launched() { // a launcher holds the directory itself
		if err := o.holdCheckpoints(c.Dir, open); err != nil {
			return nil, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err)
		}
	}
	store, _, err := checkpoint.Open(ctx, c.Place(), o.rawConn())
	if err != nil {
		return nil, err
	}
	if o.node != nil {
		store = keptStore{store}
	}
	options := checkpoint.SaverOptions{
		Team: o.team, Store: store, Layout: o.layout, Stripes: o.stripes, Rows: o.field, Every: c.Every.Time,
		Keep:  c.Keep,
		RunID: o.id.RunID, Program: version.String(), Fields: fields, Norms: norms, Log: o.Log,
		Cadence: o.norms(), OnSaved: tracer.OnSaved(),
	}
	if o.alone() {
		options.RunID += fmt.Sprint(time.Now().UnixNano()) // RunID alone is the same at every start
	}
	if o.accelerated() {
		options.Arrays, options.Rows = o.arrays(), stateRows{levelField{o.levels.device}, o.levels.search}
	}
	saver, err := checkpoint.NewSaver(ctx, options)
	if err != nil {
		return nil, err
	}
	open.add(saver.Close)
	return saver, nil
}

// holdCheckpoints locks the directory of the checkpoints for this run.
func (j *joined) holdCheckpoints(dir string, open *closers) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	lock, err := dirlock.Take(dir, j.id.RunID)
	if err != nil {
		return err
	}
	open.add(lock.Release)
	return nil
}

// solverSaver returns the saver as a solver.Saver: a nil interface, not a nil *checkpoint.Saver, if there is none.
func (l *loaded) solverSaver() solver.Saver {
	if l.saver == nil {
		return nil
	}
	return l.saver
}

// finishSaver completes the checkpoint that is being saved.
func (l *loaded) finishSaver(ctx context.Context, result solver.Result) error {
	if l.saver == nil {
		return nil
	}
	ctx, cancel := l.withFileTimeout(ctx)
	defer cancel()
	if err := l.saver.Finish(ctx, result); err != nil {
		return l.onGPU(fmt.Errorf("checkpoint of the last sweep: %w", err))
	}
	return nil
}

// checkpointReport describes the checkpoints; nil without a saver. Rank 0 calls it.
func (l *loaded) checkpointReport(times solver.Times) *output.CheckpointReport {
	if l.saver == nil {
		return nil
	}
	s := l.saver.Stats()
	return &output.CheckpointReport{
		Place: l.Config.Checkpoint.Place(), Written: s.Written, Failed: s.Failed, Sweeps: s.Sweeps, Bytes: s.Bytes,
		Write: s.Took.Seconds(), Copies: times.Save.Seconds(),
	}
}
