package solver

import (
	"context"
	"fmt"
	"time"
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

// Cadence says which sweeps of a run have a norm: First, First+Stride, First+2*Stride and so on. A Stride of 0 counts
// as 1, so the zero value stands for all sweeps.
type Cadence struct{ First, Stride int }

// EveryNth returns the cadence of norms after n, 2n, 3n, ... sweeps, for n >= 1.
func EveryNth(n int) Cadence { return Cadence{First: n - 1, Stride: n} }

// In returns how many of the first n sweeps have a norm.
func (c Cadence) In(sweeps int) int {
	if sweeps <= c.First {
		return 0
	}
	return (sweeps-1-c.First)/c.stride() + 1
}

// Sweep returns the sweep that has the i-th norm, i >= 0.
func (c Cadence) Sweep(i int) int { return c.First + i*c.stride() }

// Has reports whether a sweep has a norm.
func (c Cadence) Has(sweep int) bool { return sweep >= c.First && (sweep-c.First)%c.stride() == 0 }

// Of returns the first sweep of a pass that has a norm, and how many of its sweeps have one.
func (c Cadence) Of(p Pass) (first, n int) {
	before := c.In(p.First)
	return c.Sweep(before), c.In(p.First+p.Sweeps) - before
}

func (c Cadence) stride() int { return max(1, c.Stride) }

// NormsOf says which sweeps of a pass have a norm.
type NormsOf uint8

// The kinds of passes. Backends have kernels for each.
const (
	SomeNorms NormsOf = iota // any, up to all
	LastNorm                 // of the last sweep alone
	NoNorms
)

// NormsOf returns the kind of a pass.
func (l Layout) NormsOf(p Pass) NormsOf {
	first, n := l.Norms.Of(p)
	switch {
	case n == 0:
		return NoNorms
	case first == p.First+p.Sweeps-1:
		return LastNorm
	}
	return SomeNorms
}

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
