package outputs

import (
	"context"
	"time"

	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/trace"
)

// results merges the tallies of all ranks. It returns the results on rank 0, and nil elsewhere or without a tally. All
// ranks call it.
func (o *Outputs) results(ctx context.Context, tally *results.Tally) (*results.Results, error) {
	if tally == nil {
		return nil, nil
	}
	defer o.Tracer.Phase(trace.PhaseResults, time.Now())
	parts, err := roster.GatherOn(ctx, o.Comm, "results", tally.Part())
	if err != nil || parts == nil {
		return nil, err
	}
	merged, err := results.Merge(o.Problem, parts)
	return &merged, err
}

// endRows gives rows the first row of the rank below, and has the rank above get that of this rank. The last rank gets
// none unless top and bottom are periodic. All ranks call it.
func (o *Outputs) endRows(ctx context.Context, rows *results.Rows) error {
	size, above, below := o.id.Size, o.id.Rank-1, o.id.Rank+1
	switch ring := o.Layout.Mesh.PeriodicRows(); {
	case ring && size == 1:
		return rows.End(rows.First())
	case ring:
		above, below = (above+size)%size, below%size
	case below == size:
		below = -1
	}
	next, err := o.swap(ctx, firstRowTag, rows.First(), above, below)
	if err != nil {
		return err
	}
	return rows.End(next)
}
