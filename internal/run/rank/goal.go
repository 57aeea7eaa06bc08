package rank

import (
	"context"
	"fmt"
	"math"

	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// findGoal returns the goal of the run, and the field with which it begins. Where the first norm of the run is not the
// base of the relative tolerance, the ranks sweep the masked field once for it. If that base is 0, the masked field is
// the solution, and the run begins with it. All ranks call findGoal.
func (r *run) findGoal(ctx context.Context) (solver.Goal, solver.RowSource, error) {
	c, l := r.Config.Solver, r.layout
	goal := solver.Goal{Tolerance: c.Tolerance, Relative: c.RelativeTolerance, Blind: solver.Blind(l.Mesh, l.Magnitude)}
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
func (r *run) firstIsBase() bool {
	return r.comm.Whole().MaxGuess == 0 && !r.Config.Solver.FullStart() && r.layout.Norms.First == 0
}

// firstNorm returns the norm of the first update of a field, over all ranks.
func (r *run) firstNorm(ctx context.Context, field solver.RowSource) (float64, error) {
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
