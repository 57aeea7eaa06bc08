package exchangetest

import (
	"context"
	"sync"

	"jacobi/solver"
)

// Reducer is the solver.Reducer of the ranks of a run in this process, which share it.
type Reducer struct {
	ranks  int
	mu     sync.Mutex
	totals map[uint64]*total // by pass
}

// total is a pass whose contributions are added.
type total struct {
	solver.Contribution
	missing int
	done    chan struct{}
}

// NewReducer returns the Reducer of a number of ranks.
func NewReducer(ranks int) *Reducer { return &Reducer{ranks: ranks, totals: map[uint64]*total{}} }

func (r *Reducer) of(pass uint64) *total {
	t := r.totals[pass]
	if t == nil {
		t = &total{missing: r.ranks, done: make(chan struct{})}
		r.totals[pass] = t
	}
	return t
}

// Post implements solver.Reducer.
func (r *Reducer) Post(_ context.Context, pass uint64, c solver.Contribution) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.of(pass)
	if t.Sums == nil {
		t.Sums = make([]solver.Sum, len(c.Sums))
	}
	for i, s := range c.Sums {
		t.Sums[i].Merge(s)
	}
	t.Flags |= c.Flags
	if t.missing--; t.missing == 0 {
		close(t.done)
	}
	return nil
}

// Wait implements solver.Reducer.
func (r *Reducer) Wait(ctx context.Context, pass uint64) (solver.Contribution, error) {
	r.mu.Lock()
	t := r.of(pass)
	r.mu.Unlock()
	select {
	case <-t.done:
		return t.Contribution, nil
	case <-ctx.Done():
		return solver.Contribution{}, context.Cause(ctx)
	}
}
