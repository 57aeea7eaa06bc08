package plan

import (
	"context"

	"jacobi/internal/compute/problem"
)

// maxCounted is the largest number of points among which Problem counts the fixed ones. It takes some seconds.
const maxCounted = 1 << 30

// Problem describes the problem. ok is false if the problem has faults.
func (p *Plan) Problem(ctx context.Context) (setup problem.Setup, ok bool) {
	prob, err := p.problem.Again(ctx)
	if err != nil {
		return setup, false // Check reports the faults
	}
	defer prob.Close()
	fixed := int64(-1)
	if p.Mesh.NX <= maxCounted/p.Mesh.NY {
		if fixed, err = prob.CountFixed(ctx, 0, p.Mesh.NY); err != nil {
			return setup, false
		}
	}
	return prob.Setup(fixed), true
}
