package rank

import (
	"context"
	"fmt"

	"jacobi/solver"
	"jacobi/solver/chebyshev"
)

// forChebyshev makes p the plan of a run with Chebyshev's iteration of at most maxIterations sweeps.
func (p *plan) forChebyshev(maxIterations int) (err error) {
	if p.chebyshev, err = chebyshev.NewPlan(p.layout.Mesh, p.layout.Operator); err != nil {
		return err
	}
	if _, err := p.chebyshev.Last(maxIterations); err != nil {
		return fmt.Errorf("solver.max_iterations %d: %w", maxIterations, err)
	}
	p.layout = p.chebyshev.Fit(p.layout)
	return nil
}

// norms says which iterations have a norm.
func (p *plan) norms() solver.Cadence {
	if p.chebyshev == nil {
		return p.layout.Norms
	}
	return solver.Cadence{Stride: p.chebyshev.Stride}
}

// weigh runs Chebyshev's iteration. record gets the norms on rank 0, swept the number of sweeps done.
func (r *ready) weigh(ctx context.Context, record func(first int, norms []float64) error,
	swept func(sweeps int)) (solver.Result, error) {
	c, first := r.Config.Solver, r.id.Rank == 0
	return chebyshev.Run(ctx, r.backend, r.exchange, r.reducer, chebyshev.Options{
		Plan: r.plan.chebyshev, Start: r.resumed.Start, Magnitude: r.layout.Magnitude, Depth: r.layout.Depth,
		MaxSweeps: r.passSweeps, Tolerance: c.Tolerance, Relative: c.RelativeTolerance, MaxIterations: c.MaxIterations,
		Stop: r.stopRequested(), Saver: r.solverSaver(), SaveEvery: r.Config.Checkpoint.Every.Sweeps,
		Samples: r.samples,
		OnStep:  r.tracer.OnStep(),
		OnPass: func(sweeps int) {
			r.team.SetSweeps(sweeps)
			if first {
				swept(sweeps)
			}
		},
		OnNorm: func(sweep int, norm float64) error {
			if !first {
				return nil
			}
			norms := []float64{norm}
			if r.saver != nil {
				r.saver.AddNorms(norms)
			}
			return record(sweep, norms)
		},
	})
}
