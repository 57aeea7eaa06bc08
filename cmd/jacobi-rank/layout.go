package main

import (
	"context"

	"jacobi/internal/roster"
	"jacobi/solver"
)

// layOut computes this rank's layout from the values with which all ranks joined.
func (r *rank) layOut(context.Context) error {
	mesh := r.problem.Mesh()
	depth, maxAbs := r.cfg.Halo.Depth, 0.0
	if depth == 0 {
		depth = chooseDepth(r.team.Members(), solver.MinRows(mesh.Interior(), r.id.Size))
	}
	for _, m := range r.team.Members() {
		maxAbs = max(maxAbs, m.MaxAbs)
	}
	if err := r.problem.CheckMagnitude(maxAbs); err != nil {
		return err
	}
	var err error
	if r.stripes, err = solver.Partition(mesh.Interior(), r.id.Size, depth); err != nil {
		return err
	}
	last := r.id.Size - 1
	r.layout = solver.Layout{
		Mesh: mesh, Stripe: r.stripes[r.id.Rank], Depth: depth, Magnitude: solver.MagnitudeOf(maxAbs),
		Neighbour: [2]bool{solver.Top: r.id.Rank > 0 || mesh.PeriodicRows(),
			solver.Bottom: r.id.Rank < last || mesh.PeriodicRows()},
	}
	return nil
}

// maxSweeps returns the number of sweeps in a pass: the halo depth, or the least limit of any rank's backend if lower.
func (r *rank) maxSweeps() int {
	limit := r.layout.Depth
	for _, m := range r.team.Members() {
		limit = min(limit, m.MaxSweeps)
	}
	return limit
}

// chooseDepth returns the depth for halo.depth auto: the least depth that any rank's backend prefers, at most the rows
// of the lowest stripe.
func chooseDepth(members []roster.Member, minRows int) int {
	depth := minRows
	for _, m := range members {
		depth = min(depth, m.Depth)
	}
	return max(1, depth)
}
