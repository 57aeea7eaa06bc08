package solver

import (
	"context"
	"fmt"
	"time"
)

// Reductions are the sums over all ranks of a run: they number the passes of a Reducer and measure its calls.
type Reductions struct {
	Watch          *Watch
	reducer        Reducer
	posted, waited uint64
}

// NewReductions returns the Reductions of a run whose steps w measures.
func NewReductions(r Reducer, w *Watch) *Reductions { return &Reductions{Watch: w, reducer: r} }

// Post hands in this rank's next contribution without waiting for other ranks.
func (r *Reductions) Post(ctx context.Context, c Contribution) error {
	defer r.Watch.End(Step{Kind: StepPostNorm, Number: r.posted}, time.Now())
	r.posted++
	return r.reducer.Post(ctx, r.posted-1, c)
}

// Wait returns the total of the oldest contribution that was not waited for.
func (r *Reductions) Wait(ctx context.Context) (Contribution, error) {
	defer r.Watch.End(Step{Kind: StepWaitNorm, Number: r.waited}, time.Now())
	r.waited++
	return r.reducer.Wait(ctx, r.waited-1)
}

// Total is a Post and its Wait in one step. All contributions before it must have been waited for.
func (r *Reductions) Total(ctx context.Context, c Contribution) (total Contribution, err error) {
	defer r.Watch.End(Step{Kind: StepReduce, Number: r.posted}, time.Now())
	n := r.posted
	r.posted, r.waited = n+1, n+1
	if err := r.reducer.Post(ctx, n, c); err != nil {
		return total, err
	}
	total, err = r.reducer.Wait(ctx, n)
	if err == nil && len(total.Sums) != len(c.Sums) {
		err = fmt.Errorf("%d sums, want %d", len(total.Sums), len(c.Sums))
	}
	return total, err
}
