package exchangetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"jacobi/solver"
	"jacobi/solver/jacobi"
)

// runCancel lets all ranks but the last sweep. They wait for its rows until their context ends.
func runCancel(t *testing.T, factory Factory, c Case) {
	truth, err := newTruth(c.Mesh, 0)
	if err != nil {
		t.Fatal(err)
	}
	layouts, err := c.layouts(magnitude)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the last rank is gone")
	if err := drive(t, factory, layouts, truth, func(ctx context.Context, rank int, r Rank) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if rank == c.Ranks-1 {
			return nil
		}
		x := &observed{Exchange: r.Exchange, rank: r, layout: layouts[rank]}
		x.beforeWait = func(_ context.Context, n solver.ExchangeNumber) error {
			if n == 1 {
				go cancel(cause) // while this rank waits, or just before
			}
			return nil
		}
		x.after = func(solver.ExchangeNumber) {}
		e, err := jacobi.New(r.Backend, x, &solver.Watch{},
			jacobi.Options{Depth: c.Depth, MaxSweeps: c.sweeps(r.Backend)})
		if err != nil {
			return err
		}
		x.sweeps = e.Done
		for range 1000 {
			if _, err := e.Advance(ctx, 1<<40, 1<<40); err != nil {
				if !errors.Is(err, cause) {
					return fmt.Errorf("error %w, want %w", err, cause)
				}
				return nil
			}
		}
		return errors.New("1000 passes without rows of the last rank")
	}); err != nil {
		t.Error(err)
	}
}
