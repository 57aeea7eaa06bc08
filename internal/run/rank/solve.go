package rank

import (
	"context"

	"jacobi/internal/observe/progress"
	"jacobi/solver"
)

// solution is how the sweeps end.
type solution struct{ result solver.Result }

// progressOptions says what the progress of the run takes of it.
func (r *run) progressOptions() progress.Options {
	c, m := r.Config.Solver, r.layout.Mesh
	o := progress.Options{Comm: r.comm, Points: float64(m.NX) * float64(m.NY) * float64(r.sweepsOf(1)),
		Start: r.resumed.Start.Iterations, Max: c.MaxIterations, Step: r.step(), Cadence: r.layout.Norms, Goal: r.goal,
		Mute: r.Ordered && !r.order.Progress}
	if !r.launched() {
		o.Say = func(line string) { r.Log.Info(line) }
	}
	return o
}

// solve sweeps until the run ends, and completes the history of norms and the last checkpoint. All ranks call it.
func (r *run) solve(ctx context.Context) error {
	if err := r.outputs.AddNorms(r.resumed.Norms); err != nil {
		return err
	}
	if !r.keepOn() {
		return r.stopped()
	}
	shown := progress.Start(ctx, r.progressOptions())
	recorder := progress.NewRecorder(func(first int, norms []float64) error {
		shown.Norms(first, norms)
		return r.outputs.AddNorms(norms)
	})
	defer recorder.Close(ctx)
	reporter := r.startStats()
	result, err := r.sweep(ctx, reporter.OnStep(r.tracer.OnStep()),
		func(first int, norms []float64) error { return recorder.Add(ctx, first, norms) }, shown.Swept)
	if err != nil {
		return r.onGPU(err)
	}
	if err := recorder.Close(ctx); err != nil {
		return err
	}
	shown.Last(result)
	if err := r.finishSaver(ctx, result); err != nil {
		return err
	}
	if err := r.outputs.Finish(ctx, result); err != nil {
		return r.onGPU(err)
	}
	reporter.Finish(result)
	r.result = result
	return nil
}

// sweep runs the method. onStep gets the steps of this rank; on rank 0, record gets the norms, and swept the iterations
// done where most have no norm.
func (r *run) sweep(ctx context.Context, onStep solver.OnStep, record func(first int, norms []float64) error,
	swept func(done int)) (solver.Result, error) {
	sums := solver.NewReductions(r.reducer, &solver.Watch{OnStep: onStep})
	it, err := r.method.Iteration(r.resumed.Start.Iterations, r.initial, sums)
	if err != nil {
		return solver.Result{}, err
	}
	comm, saver, first := r.comm, r.saver, r.id.Rank == 0 // the callbacks run once a pass
	return solver.Drive(ctx, it, sums, solver.Options{
		Start:         r.resumed.Start,
		Magnitude:     r.layout.Magnitude,
		Goal:          r.goal,
		MaxIterations: r.Config.Solver.MaxIterations,
		Stop:          r.stopRequested(),
		Saver:         r.solverSaver(),
		SaveEvery:     r.Config.Checkpoint.Every.Sweeps,
		Samples:       r.outputs.Samples(),
		OnPass: func(done int) {
			comm.SetIterations(done)
			if first && r.layout.Norms.Stride > 1 {
				swept(done)
			}
		},
		OnNorms: func(iteration int, norms []float64) error {
			if !first {
				return nil
			}
			if saver != nil {
				saver.AddNorms(norms)
			}
			return record(iteration, norms)
		},
	})
}
