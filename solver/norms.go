package solver

import (
	"context"
	"fmt"
)

// norms sends the sums of passes to the reducer and gets the totals over all ranks back.
//
// A pass goes through three states: swept, posted (its sums were handed to the reducer) and settled (its total, the
// same on every rank, is known here). Settling lags behind sweeping by up to Options.Ahead passes, so that no rank
// waits for a norm.
type norms struct {
	sweeper Sweeper
	reducer Reducer
	cadence Cadence
	lag     int          // passes between a pass and the call of its Sums, as in Limits
	flags   func() Flags // of this rank, sent along with its sums

	swept  []Pass // those not settled, oldest first; at most Options.Ahead+1
	posted uint64 // passes below this were posted
}

// add records a swept pass.
func (n *norms) add(ctx context.Context, p Pass) error {
	n.swept = append(n.swept, p)
	return n.post(ctx, n.lag)
}

// waiting returns the number of swept passes that are not settled.
func (n *norms) waiting() int { return len(n.swept) }

// post hands the sums of all swept passes except the newest keep to the reducer.
func (n *norms) post(ctx context.Context, keep int) error {
	for _, p := range n.swept[:max(0, len(n.swept)-keep)] {
		if p.Index < n.posted {
			continue
		}
		var sums []Sum // a pass without norms is posted too, for its flags
		var err error
		if _, count := n.cadence.Of(p); count > 0 {
			sums, err = n.sweeper.Sums(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("sweep %d: norm: %w", p.First, err)
		}
		if err := n.reducer.Post(ctx, p.Index, Contribution{Sums: sums, Flags: n.flags()}); err != nil {
			return fmt.Errorf("sweep %d: norm: %w", p.First, err)
		}
		n.posted = p.Index + 1
	}
	return nil
}

// settle waits for the total of the oldest pass that is not settled. ok is false if no more than keep passes are left.
func (n *norms) settle(ctx context.Context, keep int) (p Pass, total Contribution, ok bool, err error) {
	if err := n.post(ctx, min(keep, n.lag)); err != nil {
		return Pass{}, Contribution{}, false, err
	}
	if len(n.swept) <= keep {
		return Pass{}, Contribution{}, false, nil
	}
	p = n.swept[0]
	if total, err = n.reducer.Wait(ctx, p.Index); err != nil {
		return Pass{}, Contribution{}, false, fmt.Errorf("sweep %d: norm: %w", p.First, err)
	}
	if _, want := n.cadence.Of(p); len(total.Sums) != want {
		return Pass{}, Contribution{}, false,
			fmt.Errorf("sweep %d: norm: %d sums for %d sweeps, of which %d have a norm", p.First, len(total.Sums),
				p.Sweeps, want)
	}
	n.swept = append(n.swept[:0], n.swept[1:]...)
	return p, total, true, nil
}
