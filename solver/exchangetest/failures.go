package exchangetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"jacobi/solver"
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
		x.before = func(_ context.Context, call solver.Call, n solver.ExchangeNumber) error {
			if call == solver.CallWait && n == 1 {
				go cancel(cause) // while this rank waits, or just before
			}
			return nil
		}
		x.after = func(solver.ExchangeNumber) {}
		e, err := solver.NewEngine(r.Backend, x, solver.EngineOptions{Depth: c.Depth, MaxSweeps: c.sweeps(r.Backend)})
		if err != nil {
			return err
		}
		x.sweeps = e.Sweeps
		for range 1000 {
			if _, err := e.Advance(ctx, 1<<40); err != nil {
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

// runOrder checks that an exchange refuses calls in the wrong order with an error that names the exchange, and that a
// refused call changes nothing.
func runOrder(t *testing.T, factory Factory, c Case) {
	truth, err := newTruth(c.Mesh, 2*c.Depth)
	if err != nil {
		t.Fatal(err)
	}
	layouts, err := c.layouts(magnitude)
	if err != nil {
		t.Fatal(err)
	}
	if err := drive(t, factory, layouts, truth, func(ctx context.Context, _ int, r Rank) error {
		o := order{r: r, ctx: ctx}
		first := solver.Pass{Sweeps: c.Sweeps, Margin: c.Depth - c.Sweeps}
		last := solver.Pass{Index: 1, First: c.Sweeps, Sweeps: c.Depth - c.Sweeps}
		o.refuse("Wait before any Post", r.Exchange.Wait, 1)
		o.refuse("Post of exchange 0", r.Exchange.Post, 0)
		o.ok(r.Backend.Interior(ctx, first))
		o.ok(r.Backend.Edges(ctx, last))
		o.refuse("Post of the exchange after the next", r.Exchange.Post, 2)
		o.ok(r.Exchange.Post(ctx, 1))
		o.refuse("Post of an exchange again", r.Exchange.Post, 1)
		o.refuse("Post of the next exchange before Wait", r.Exchange.Post, 2)
		o.ok(r.Backend.Interior(ctx, last))
		o.refuse("Wait for another exchange", r.Exchange.Wait, 2)
		o.ok(r.Exchange.Wait(ctx, 1))
		o.refuse("Wait for an exchange again", r.Exchange.Wait, 1)
		o.ok(checkHalos(ctx, r, layouts[0], truth, c.Depth))
		if layouts[0].Neighbour[solver.Top] {
			o.refuse("Post before Edges", r.Exchange.Post, 2)
			pass := solver.Pass{Index: 2, First: c.Depth, Sweeps: c.Depth}
			o.ok(r.Backend.Edges(ctx, pass))
			o.ok(r.Exchange.Post(ctx, 2))
			o.refuse("Wait before Interior", r.Exchange.Wait, 2)
		}
		return errors.Join(o.errs...)
	}); err != nil {
		t.Error(err)
	}
}

// order collects what runOrder finds.
type order struct {
	r    Rank
	ctx  context.Context
	errs []error
}

func (o *order) ok(err error) { o.errs = append(o.errs, err) }

// refuse makes a call that must be refused.
func (o *order) refuse(what string, call func(context.Context, solver.ExchangeNumber) error, n solver.ExchangeNumber) {
	err := call(o.ctx, n)
	var number *solver.ExchangeOrderError
	var state *solver.OrderError
	if !errors.As(err, &number) && !errors.As(err, &state) {
		o.errs = append(o.errs, fmt.Errorf("%s: error %v, want one of the order", what, err))
		return
	}
	if err := namesExchange(err, n); err != nil {
		o.errs = append(o.errs, fmt.Errorf("%s: %w", what, err))
	}
}
