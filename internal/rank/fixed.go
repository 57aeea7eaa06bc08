package rank

import (
	"context"
	"fmt"
	"slices"

	"jacobi/internal/roster"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// fixedPoints returns the fixed points of all levels. Every rank needs those of the whole mesh, so that each reads the
// rows of its stripe and the ranks exchange them. Where that takes more than a message, each reads all rows.
func (o *opened) fixedPoints(ctx context.Context, p *multigrid.Plan, rows solver.FixedRows) ([]multigrid.Fixed, error) {
	if o.id.Size == 1 {
		return p.FixedPoints(rows)
	}
	mesh, interior, own := o.plan.layout.Mesh, o.plan.layout.Mesh.Interior(), o.plan.layout.Stripe
	finest := make(multigrid.Fixed, mesh.NY)
	for _, s := range []solver.Stripe{own, {Hi: interior.Lo}, {Lo: interior.Hi, Hi: mesh.NY}} {
		if err := finest.Read(mesh, rows, s); err != nil {
			return nil, err
		}
	}
	data := finest.Encode(own)
	if len(data) > roster.MaxMessage/o.id.Size {
		data = nil
	}
	ctx, cancel := o.withFileTimeout(ctx)
	defer cancel()
	parts, err := o.team.Gather(ctx, "fixed points", data)
	if err != nil {
		return nil, err
	}
	whole, err := o.team.Broadcast(ctx, "fixed points", join(parts))
	if err != nil {
		return nil, err
	}
	if len(whole) == 0 {
		return p.FixedPoints(rows)
	}
	if err := finest.Decode(whole, interior, mesh.NX); err != nil {
		return nil, fmt.Errorf("rank %d: %w", o.id.Rank, err)
	}
	return p.CoarserFixed(finest), nil
}

// join returns the parts of all ranks in one, or nil if one is missing.
func join(parts [][]byte) []byte {
	if slices.ContainsFunc(parts, func(b []byte) bool { return len(b) == 0 }) {
		return nil
	}
	return slices.Concat(parts...)
}
