package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
)

// united is what the ranks agree on besides the roster.
type united struct {
	Contents problem.Sums     `json:"contents"`
	Islands  *problem.Islands `json:"islands,omitempty"` // nil where there can be none
	Values   []float64        `json:"values,omitempty"`  // of the regions that float, if all ranks know them
	Taken    *problem.Surplus `json:"taken,omitempty"`   // of a loose problem
}

// uniteSurveys finds the islands, and what is taken off the source, from what all ranks have surveyed, on rank 0.
func (r *run) uniteSurveys(shares []roster.Share) (v *problem.Islands, taken *problem.Surplus, err error) {
	all := make([]problem.Survey, len(shares))
	for rank, s := range shares {
		if err := json.Unmarshal(s.Islands, &all[rank]); err != nil {
			return nil, nil, fmt.Errorf("islands of rank %d: %w", rank, err)
		}
	}
	if slices.ContainsFunc(all, func(s problem.Survey) bool { return s.Any }) {
		if v, err = r.problem.UniteSurveys(all); err != nil {
			return nil, nil, err
		}
	}
	taken, err = r.problem.Balance(all, v)
	return v, taken, err
}

// uniteIslands has the ranks tell each other where the islands lie, each in the rows that it has surveyed. Where that
// takes more than a message, each surveys all rows.
func (r *run) uniteIslands(ctx context.Context, v *problem.Islands) error {
	if r.problem.Tell(v); v == nil || !v.Any() {
		return nil
	}
	wait, cancel := r.withFileTimeout(ctx)
	defer cancel()
	whole, err := r.comm.Pool(wait, "islands", r.survey.Patches(v, r.id.Rank))
	switch {
	case err != nil:
		return err
	case len(whole) == 0:
		return r.problem.FindIslands(ctx)
	}
	if err := r.problem.TakeIslands(v, whole); err != nil {
		return fmt.Errorf("rank %d: %w", r.id.Rank, err)
	}
	return nil
}
