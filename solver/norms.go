package solver

import (
	"context"
	"fmt"
)

// norms sends the sums of passes to the reducer and gets the totals over all ranks back.
//
// A pass goes through three states: swept, posted (its sums were handed to the reducer) and settled (its total, the
// same on every rank, is known here). Settling lags behind sweeping by up to Traits.Ahead passes, so that no rank waits
// for a norm.
type norms struct {
	it     Iteration
	traits Traits
	sums   *Reductions
	flags  func() Flags // of this rank, sent along with its sums

	swept  []Pass // those not settled, oldest first; at most Ahead+1
	posted int    // of swept
}

// add records a pass.
func (n *norms) add(ctx context.Context, p Pass) error {
	n.swept = append(n.swept, p)
	if n.traits.Ahead == 0 {
		return nil
	}
	return n.post(ctx, n.traits.Lag)
}

// waiting returns the number of passes that are not settled.
func (n *norms) waiting() int { return len(n.swept) }

// post hands the sums of all passes except the newest keep to the reducer.
func (n *norms) post(ctx context.Context, keep int) error {
	for n.posted < len(n.swept)-keep {
		p := n.swept[n.posted]
		c, err := n.own(ctx, p)
		if err == nil {
			err = n.sums.Post(ctx, c)
		}
		if err != nil {
			return n.fault(p, err)
		}
		n.posted++
	}
	return nil
}

// own returns what this rank adds to the reduction of a pass. Passes without norms contribute flags alone.
func (n *norms) own(ctx context.Context, p Pass) (c Contribution, err error) {
	if _, count := n.traits.Norms.Of(p); count > 0 {
		c.Sums, err = n.it.Sums(ctx, p)
	}
	c.Flags = n.flags()
	return c, err
}

// settle waits for the total of the oldest pass that is not settled. ok is false if no more than keep passes are left.
func (n *norms) settle(ctx context.Context, keep int) (p Pass, total Contribution, ok bool, err error) {
	if n.traits.Ahead > 0 {
		if err := n.post(ctx, min(keep, n.traits.Lag)); err != nil {
			return p, total, false, err
		}
	}
	if len(n.swept) <= keep {
		return p, total, false, nil
	}
	p = n.swept[0]
	if n.traits.Ahead > 0 {
		total, err = n.sums.Wait(ctx)
		n.posted--
	} else if total, err = n.own(ctx, p); err == nil {
		total, err = n.sums.Total(ctx, total)
	}
	if _, want := n.traits.Norms.Of(p); err == nil && len(total.Sums) != want {
		err = fmt.Errorf("%d sums for %d %ss, want %d", len(total.Sums), p.Sweeps, n.traits.Unit, want)
	}
	if err != nil {
		return p, total, false, n.fault(p, err)
	}
	n.swept = append(n.swept[:0], n.swept[1:]...)
	return p, total, true, nil
}

// fault says with which pass an error occurred.
func (n *norms) fault(p Pass, err error) error {
	return fmt.Errorf("%s %d: norm: %w", n.traits.Unit, p.First, err)
}
