package outputs

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

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
	parts, err := roster.GatherOn(ctx, o.Team, "results", tally.Part())
	if err != nil || parts == nil {
		return nil, err
	}
	merged, err := results.Merge(o.Problem, parts)
	return &merged, err
}

// endRows gives rows the first row of the rank below. All ranks call it.
func (o *Outputs) endRows(ctx context.Context, rows *results.Rows) error {
	next, err := o.nextRow(ctx, rows.First())
	if err != nil {
		return err
	}
	return rows.End(next)
}

// nextRow sends the first row of this rank's stripe to the rank above, and returns that of the rank below. It returns
// nil on the last rank unless top and bottom are periodic.
func (o *Outputs) nextRow(ctx context.Context, first []byte) (next []byte, err error) {
	rank, size, ring := o.id.Rank, o.id.Size, o.Layout.Mesh.PeriodicRows()
	if size == 1 {
		if ring {
			next = first
		}
		return next, nil
	}
	both, ctx := errgroup.WithContext(ctx) // a send ends when the other rank receives
	if rank > 0 || ring {
		both.Go(func() error { return o.sendRow(ctx, (rank+size-1)%size, firstRowTag, first) })
	}
	if rank < size-1 || ring {
		both.Go(func() error {
			row, err := o.receiveRow(ctx, (rank+1)%size, firstRowTag)
			next = row
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return nil, err
	}
	return next, nil
}
