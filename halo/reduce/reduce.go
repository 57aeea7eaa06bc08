// Package reduce adds the norms' sums over all ranks: through shared memory among the ranks of a node, over NATS among
// the nodes. The sums are integers, so the total does not depend on the order of the ranks.
package reduce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// window is the number of passes that a rank may have posted and not yet waited for.
type window uint64

// ring returns the number of passes that every buffer holds: pass n lies in slot n%ring. Twice the window is enough. A
// rank posts pass n only after its Wait(n-window) has returned. That needed the Post(n-window) of every rank, and each
// rank posted that pass only after its Wait(n-ring). So no rank reads pass n-ring any more when pass n overwrites it.
func (w window) ring() uint64 { return 2 * uint64(w) }

// slot returns the slot of a pass.
func (w window) slot(pass uint64) int { return int(pass % w.ring()) }

// batch returns the number of passes that a leader sends in one message while it does not wait for any of them. A pass
// that is kept back at every leader on its way, and at the root, is late by less than half the window.
func (w window) batch() int { return max(1, int(w)/8) }

// maxWindow bounds the memory of a node: a slot takes 32 bytes for each sum of each rank.
const maxWindow = 1024

// Options are the arguments of New. All ranks must give the same MaxSums, Window and NATSOnly.
type Options struct {
	Comm     *roster.Comm
	MaxSums  int           // maximum number of sums in a contribution (of sweeps in a pass)
	Window   int           // maximum number of passes posted and not waited for, 1 to 1024
	NATSOnly bool          // every rank is a node of its own
	Timeout  time.Duration // of every Wait, and of New
	Spin     time.Duration // how long a wait polls before it sleeps; see shm.SpinTime
	Log      *zap.Logger   // may be nil

	ask  time.Duration                          // wait before the first repetition; 0: firstAsk
	fan  int                                    // largest number of leaders that contribute to one; 0: treeFan
	open func(shm.Handle) (*shm.Segment, error) // nil: shm.Open
}

// TimeoutError reports that a total did not arrive in time.
type TimeoutError struct {
	Pass  uint64
	Ranks []int // ranks known not to have contributed; empty if only the total is missing
	After time.Duration
}

func (e *TimeoutError) Error() string {
	if len(e.Ranks) == 0 {
		return fmt.Sprintf("reduction of pass %d: no total from rank 0 within %v", e.Pass, e.After)
	}
	return fmt.Sprintf("reduction of pass %d: no contribution of %s within %v", e.Pass, roster.FormatRanks(e.Ranks),
		e.After)
}

// Timeout reports that the error is a timeout, as net.Error has it.
func (e *TimeoutError) Timeout() bool { return true }

// MismatchError reports that two ranks contributed different numbers of sums to one pass.
type MismatchError struct {
	Pass uint64
	Rank int // the one that differs
	Sums int
	Want int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("reduction of pass %d: %d sums from rank %d, %d from others", e.Pass, e.Sums, e.Rank, e.Want)
}

// path is a rank's way to the totals: through memory, over NATS, or both.
type path interface {
	// post adds the contribution of this rank. It does not wait for other ranks, and it copies c. An error is that of
	// the next wait.
	post(pass uint64, c solver.Contribution)
	// wait returns the total of a pass that was posted.
	wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error)
	// missing returns the ranks that are known not to have contributed to pass.
	missing(pass uint64) []int
	close() error
}

// Reducer is a solver.Reducer over the ranks of a comm. One goroutine calls its methods.
type Reducer struct {
	opts   Options
	path   path
	about  string
	posted uint64 // passes below this were posted
	waited uint64 // passes below this were waited for
}

// New opens the reduction among all ranks of the comm. All ranks must call it.
func New(ctx context.Context, o Options) (*Reducer, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.ask == 0 {
		o.ask = firstAsk
	}
	if o.fan == 0 {
		o.fan = treeFan
	}
	if o.open == nil {
		o.open = shm.Open
	}
	if o.MaxSums < 1 || o.MaxSums > maxSums {
		return nil, fmt.Errorf("reduction: at most %d sums a pass, allowed are 1 to %d", o.MaxSums, maxSums)
	}
	ctx, cancel := awake.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if o.Window < 1 || o.Window > maxWindow {
		return nil, fmt.Errorf("reduction: window of %d passes, allowed are 1 to %d", o.Window, maxWindow)
	}
	p, about, err := open(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("open the reduction: %w", err)
	}
	return &Reducer{opts: o, path: p, about: about}, nil
}

// Describe returns the path of this rank in a few words, for reports.
func (r *Reducer) Describe() string { return r.about }

// Post implements solver.Reducer. Passes are numbered 0, 1, 2, ... A rank may post Options.Window passes before it
// waits for the first of them.
func (r *Reducer) Post(_ context.Context, pass uint64, c solver.Contribution) error {
	if pass != r.posted || pass >= r.waited+uint64(r.opts.Window) {
		return fmt.Errorf("reduction: pass %d posted after %d passes and %d waits", pass, r.posted,
			r.waited)
	}
	if len(c.Sums) > r.opts.MaxSums {
		return fmt.Errorf("reduction of pass %d: %d sums, at most %d were announced", pass, len(c.Sums), r.opts.MaxSums)
	}
	r.path.post(pass, c)
	r.posted++
	return nil
}

// Wait implements solver.Reducer. It fails with a *TimeoutError if the total does not arrive within the timeout, and
// with the cause of ctx if ctx ends.
func (r *Reducer) Wait(ctx context.Context, pass uint64) (solver.Contribution, error) {
	if pass != r.waited || pass >= r.posted {
		return solver.Contribution{}, fmt.Errorf("reduction: wait for pass %d when %d passes were posted and %d "+
			"waited for", pass, r.posted, r.waited)
	}
	limit := awake.Of(ctx).Limit(r.opts.Timeout)
	total, err := r.path.wait(ctx, pass, limit.Earliest())
	for errors.Is(err, errLate) && limit.Left() > 0 { // the limit does not count time in which the run was stopped
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

// Close ends this rank's part. Call it after a Barrier: a rank that still waits for a total may need an answer of this
// rank.
func (r *Reducer) Close() error { return r.path.close() }

// merge adds c, the contribution of rank, to total. The first contribution of a pass sets the number of sums.
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
type solo struct {
	window window
	kept   []solver.Contribution // by slot
}

func (s *solo) post(pass uint64, c solver.Contribution) {
	_ = merge(&s.kept[s.window.slot(pass)], true, pass, 0, c) // the first sums always fit
}

func (s *solo) wait(_ context.Context, pass uint64, _ time.Time) (solver.Contribution, error) {
	return s.kept[s.window.slot(pass)], nil
}

func (s *solo) missing(uint64) []int { return nil }
func (s *solo) close() error         { return nil }
