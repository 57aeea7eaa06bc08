package rank

import (
	"context"

	"jacobi/internal/outlook"
	"jacobi/solver"
)

// solved is a rank that has swept.
type solved struct {
	*ready
	forecast *outlook.Outlook // rank 0 only
	result   solver.Result
}

// outlook estimates how the run will end. Only rank 0 needs that; the others return nil.
func (l *loaded) outlook(ctx context.Context) (*outlook.Outlook, error) {
	if l.id.Rank != 0 {
		return nil, nil
	}
	return outlook.New(ctx, l.problem)
}

// solve sweeps until the run ends, and completes the history of norms and the last checkpoint. All ranks call it.
func (r *ready) solve(ctx context.Context, forecast *outlook.Outlook, open *closers) (*solved, error) {
	if err := r.addNorms(r.resumed.Norms); err != nil {
		return nil, err
	}
	r.viewer.add(r.resumed.Norms)
	if !r.keepOn() {
		return nil, context.Cause(r.Stop)
	}
	progress := r.newProgress(ctx, forecast)
	recorder := newRecorder(func(first int, norms []float64) error {
		progress.norms(first, norms)
		r.viewer.add(norms)
		return r.addNorms(norms)
	})
	defer recorder.close(ctx)
	reporter := r.newReporter(open)
	defer reporter.stop()
	result, err := r.sweep(ctx, func(first int, norms []float64) error { return recorder.add(ctx, first, norms) },
		progress.swept)
	if err != nil {
		return nil, r.onGPU(err)
	}
	if err := recorder.close(ctx); err != nil {
		return nil, err
	}
	progress.last(result)
	if err := r.viewer.last(ctx, result.Sweeps); err != nil {
		return nil, r.onGPU(err)
	}
	if err := r.finishSaver(ctx, result); err != nil {
		return nil, err
	}
	if err := r.finishSamples(ctx, result); err != nil {
		return nil, err
	}
	reporter.finish(result)
	return &solved{ready: r, forecast: forecast, result: result}, nil
}

// sweep runs the solver. On rank 0, record gets the norms, and swept the number of sweeps done where most have no norm.
func (r *ready) sweep(ctx context.Context, record func(first int, norms []float64) error,
	swept func(sweeps int)) (solver.Result, error) {
	switch {
	case r.levels != nil:
		return r.cycle(ctx, record)
	case r.plan.chebyshev != nil:
		return r.weigh(ctx, record, swept)
	}
	team, saver, first := r.team, r.saver, r.id.Rank == 0 // the callbacks run once a pass
	return solver.Run(ctx, r.backend, r.exchange, r.reducer, solver.Options{
		Initial:       r.problem,
		Start:         r.resumed.Start,
		Magnitude:     r.layout.Magnitude,
		Depth:         r.layout.Depth,
		MaxSweeps:     r.passSweeps,
		Ahead:         r.ahead,
		Tolerance:     r.Config.Solver.Tolerance,
		MaxIterations: r.Config.Solver.MaxIterations,
		Stop:          r.stopRequested(),
		Saver:         r.solverSaver(),
		SaveEvery:     r.Config.Checkpoint.Every.Sweeps,
		Samples:       r.samples,
		OnStep:        r.tracer.OnStep(),
		Norms:         r.layout.Norms,
		OnPass: func(sweeps int) {
			team.SetSweeps(sweeps)
			if first && r.layout.Norms.Stride > 1 {
				swept(sweeps)
			}
		},
		OnNorms: func(sweep int, norms []float64) error {
			if !first {
				return nil
			}
			if saver != nil {
				saver.AddNorms(norms)
			}
			return record(sweep, norms)
		},
	})
}
