// Package reduce adds the norms' sums over all ranks: through shared memory among the ranks of a node, over NATS among
// the nodes. The sums are integers, so the total does not depend on the order of the ranks.
package reduce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/awake"
	"jacobi/internal/roster"
	"jacobi/internal/shm"
	"jacobi/solver"
)

// ring is the number of passes that every buffer holds: pass b lies in slot b%ring. A rank posts pass b only after
// its Wait(b-2), which needed everybody's Post(b-2), which came after everybody's Wait(b-4). So nobody
// looks any more at what pass b overwrites.
const ring = 4

// ahead is the number of passes that may be posted and not waited for.
const ahead = 2

// Options say what New needs to know. All ranks give the same MaxSums and NATSOnly.
type Options struct {
	Team     *roster.Team
	MaxSums  int           // most sums in a contribution: the most sweeps in a pass
	NATSOnly bool          // every rank is a node of its own
	Timeout  time.Duration // of every Wait, and of New
	Spin     time.Duration // how long to look before sleeping, see shm.SpinTime
	Log      *zap.Logger   // may be nil

	ask  time.Duration                          // before the first repetition; 0: firstAsk
	open func(shm.Handle) (*shm.Segment, error) // nil: shm.Open
}

// TimeoutError says that a total was not there in time.
type TimeoutError struct {
	Pass  uint64
	Ranks []int // those known not to have contributed; empty when only the total did not come
	After time.Duration
}

func (e *TimeoutError) Error() string {
	if len(e.Ranks) == 0 {
		return fmt.Sprintf("reduction of pass %d: no total from rank 0 within %v", e.Pass, e.After)
	}
	return fmt.Sprintf("reduction of pass %d: no contribution of %s within %v", e.Pass, roster.FormatRanks(e.Ranks),
		e.After)
}

// Timeout reports that this is a timeout, as of net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// MismatchError says that two ranks contributed different numbers of sums to one pass.
type MismatchError struct {
	Pass uint64
	Rank int // the one that differs
	Sums int
	Want int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("reduction of pass %d: %d sums from rank %d, %d from others", e.Pass, e.Sums, e.Rank, e.Want)
}

// path is one way to a total.
type path interface {
	// post hands in a contribution; it does not wait for others and keeps nothing of c.
	post(pass uint64, c solver.Contribution) error
	// wait returns the total of a pass posted before.
	wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error)
	// missing returns the ranks that are known not to have contributed.
	missing(pass uint64) []int
	close() error
}

// Reducer is a solver.Reducer over the ranks of a team. Its calls come from one goroutine.
type Reducer struct {
	opts   Options
	path   path
	about  string
	posted uint64 // passes below this were posted
	waited uint64 // passes below this were waited for
}

// New opens the reduction among all ranks of the team; all of them call it.
func New(ctx context.Context, o Options) (*Reducer, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.ask == 0 {
		o.ask = firstAsk
	}
	if o.open == nil {
		o.open = shm.Open
	}
	if o.MaxSums < 1 || o.MaxSums > maxSums {
		return nil, fmt.Errorf("reduction: at most %d sums a pass, allowed are 1 to %d", o.MaxSums, maxSums)
	}
	ctx, cancel := awake.WithTimeout(ctx, o.Timeout)
	defer cancel()
	p, about, err := open(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("open the reduction: %w", err)
	}
	return &Reducer{opts: o, path: p, about: about}, nil
}

// Describe says in a few words how this rank takes part, for reports.
func (r *Reducer) Describe() string { return r.about }

// Post implements solver.Reducer. Passes are numbered 0, 1, 2, ... and at most two are posted and not waited for.
func (r *Reducer) Post(_ context.Context, pass uint64, c solver.Contribution) error {
	if pass != r.posted || pass >= r.waited+ahead {
		return fmt.Errorf("reduction: pass %d posted after %d passes, of which %d were waited for", pass, r.posted,
			r.waited)
	}
	if len(c.Sums) > r.opts.MaxSums {
		return fmt.Errorf("reduction of pass %d: %d sums, at most %d were announced", pass, len(c.Sums), r.opts.MaxSums)
	}
	if err := r.path.post(pass, c); err != nil {
		return fmt.Errorf("reduction of pass %d: %w", pass, err)
	}
	r.posted++
	return nil
}

// Wait implements solver.Reducer. It fails with a *TimeoutError when the total is not there within the timeout,
// and with the cause of ctx's end.
func (r *Reducer) Wait(ctx context.Context, pass uint64) (solver.Contribution, error) {
	if pass != r.waited || pass >= r.posted {
		return solver.Contribution{}, fmt.Errorf("reduction: wait for pass %d when %d passes were posted and %d "+
			"waited for", pass, r.posted, r.waited)
	}
	limit := awake.Of(ctx).Limit(r.opts.Timeout)
	total, err := r.path.wait(ctx, pass, limit.Deadline())
	for errors.Is(err, errLate) && limit.Left() > 0 { // the run was stopped meanwhile
		total, err = r.path.wait(ctx, pass, limit.Deadline())
	}
	switch {
	case errors.Is(err, errLate):
		return solver.Contribution{}, &TimeoutError{Pass: pass, Ranks: r.path.missing(pass), After: r.opts.Timeout}
	case err != nil:
		return solver.Contribution{}, fmt.Errorf("reduction of pass %d: %w", pass, err)
	}
	r.waited++
	return total, nil
}

// Close ends this rank's part. Ranks that still wait for a total may ask in vain from then on: a Barrier comes
// before it.
func (r *Reducer) Close() error { return r.path.close() }

// merge adds c, which rank contributed, to total; the first contribution sets the number of sums.
func merge(total *solver.Contribution, first bool, pass uint64, rank int, c solver.Contribution) error {
	if first {
		total.Sums = append(total.Sums[:0], c.Sums...)
		total.Flags = c.Flags
		return nil
	}
	if len(c.Sums) != len(total.Sums) {
		return &MismatchError{Pass: pass, Rank: rank, Sums: len(c.Sums), Want: len(total.Sums)}
	}
	for i, s := range c.Sums {
		total.Sums[i].Merge(s)
	}
	total.Flags |= c.Flags
	return nil
}

// solo is the path of a run of one rank.
type solo struct{ kept [ring]solver.Contribution }

func (s *solo) post(pass uint64, c solver.Contribution) error {
	return merge(&s.kept[pass%ring], true, pass, 0, c)
}

func (s *solo) wait(_ context.Context, pass uint64, _ time.Time) (solver.Contribution, error) {
	return s.kept[pass%ring], nil
}

func (s *solo) missing(uint64) []int { return nil }
func (s *solo) close() error         { return nil }
