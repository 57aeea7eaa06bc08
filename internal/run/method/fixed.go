package method

import (
	"context"
	"fmt"
	"slices"

	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// fixedPoints returns the fixed points of all levels. Every rank needs those of the whole mesh, so that each reads the
// rows of its stripe and the ranks exchange them. Where that takes more than a message, each reads all rows.
func fixedPoints(ctx context.Context, o Options, rows solver.FixedRows) ([]multigrid.FixedRuns, error) {
	p := o.Levels.Plan
	if o.Ranks == 1 {
		return p.FixedPoints(rows)
	}
	mesh, interior, own := o.Layout.Mesh, o.Layout.Mesh.Interior(), o.Layout.Stripe
	finest := make(multigrid.FixedRuns, mesh.NY)
	for _, s := range []solver.Stripe{own, {Hi: interior.Lo}, {Lo: interior.Hi, Hi: mesh.NY}} {
		if err := finest.Read(mesh, rows, s); err != nil {
			return nil, err
		}
	}
	data := finest.Encode(own)
	if len(data) > roster.MaxMessage/o.Ranks {
		data = nil
	}
	ctx, cancel := awake.WithTimeout(ctx, o.Timeout)
	defer cancel()
	whole, err := o.Comm.Decide(ctx, "fixed points", data, func(parts [][]byte) ([]byte, error) {
		return join(parts), nil
	})
	if err != nil {
		return nil, err
	}
	if len(whole) == 0 {
		return p.FixedPoints(rows)
	}
	if err := finest.Decode(whole, interior, mesh.NX); err != nil {
		return nil, fmt.Errorf("rank %d: %w", o.Rank, err)
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
