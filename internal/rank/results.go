package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"jacobi/internal/results"
	"jacobi/internal/trace"
)

// results merges the tallies of all ranks. It returns the results on rank 0, and nil elsewhere or without a tally. All
// ranks call it.
func (r *ready) results(ctx context.Context, tally *results.Tally) (*results.Results, error) {
	if tally == nil {
		return nil, nil
	}
	defer r.tracer.Phase(trace.PhaseResults, time.Now())
	next, err := r.nextRow(ctx, tally.First())
	if err != nil {
		return nil, err
	}
	own, err := tally.End(next)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	all, err := r.team.Gather(ctx, "results", data)
	if err != nil || r.id.Rank != 0 {
		return nil, err
	}
	parts := make([]results.Part, len(all))
	for rank, part := range all {
		if err := json.Unmarshal(part, &parts[rank]); err != nil {
			return nil, fmt.Errorf("results of rank %d: %w", rank, err)
		}
	}
	merged, err := results.Merge(r.problem, parts)
	return &merged, err
}

// nextRow sends the first row of this rank's stripe to the rank above, and returns that of the rank below. It returns
// nil on the last rank unless top and bottom are periodic.
func (r *ready) nextRow(ctx context.Context, first []byte) (next []byte, err error) {
	rank, size, ring := r.id.Rank, r.id.Size, r.layout.Mesh.PeriodicRows()
	if size == 1 {
		if ring {
			next = first
		}
		return next, nil
	}
	both, ctx := errgroup.WithContext(ctx) // a send ends when the other rank receives
	if rank > 0 || ring {
		both.Go(func() error { return r.sendRow(ctx, (rank+size-1)%size, firstRowTag, first) })
	}
	if rank < size-1 || ring {
		both.Go(func() error {
			row, err := r.receiveRow(ctx, (rank+1)%size, firstRowTag)
			next = row
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return nil, err
	}
	return next, nil
}
