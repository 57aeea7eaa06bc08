package solver

import "context"

// Iteration is a method at work on the field of a run. It advances the field in passes of one or more iterations, such
// as sweeps, and yields the sum of each iteration's norm. All calls come from one goroutine, and all ranks make the
// same ones.
type Iteration interface {
	// Traits returns what does not change during a run.
	Traits() Traits
	// Done returns the number of iterations done: the field is the one after that many.
	Done() int
	// Begin is called once, before all other steps. Where the norm of the loaded field is to be known before the first
	// iteration (Traits.Delay is 0), it returns a pass that has only that norm; otherwise the zero Pass.
	Begin(ctx context.Context) (Pass, error)
	// Advance does the next pass, up to the given number of iterations at most, of a run that ends after end of them.
	Advance(ctx context.Context, to, end int) (Pass, error)
	// Sums returns the sums of this rank for those iterations of a pass that have a norm (Traits.Norms). The slice is
	// valid until the next call.
	Sums(ctx context.Context, p Pass) ([]Sum, error)
	// Finish makes the field the one after end iterations, at most those done. It is called when the run has ended.
	Finish(ctx context.Context, end int) error
	// Leave does what is left after Finish and leaves the field as it is. Its time is not in Times.Total.
	Leave(ctx context.Context) error
}

// Traits are what Drive has to know of an Iteration. They are the same on all ranks, except for Lag.
type Traits struct {
	Unit  string  // what an iteration is called in errors, such as "sweep"
	Norms Cadence // which iterations have a norm
	Lag   int     // passes between a pass and the call of Sums, as in Limits
	// Ahead is the number of passes that may be done before the norms of the oldest of them are waited for. The Reducer
	// must admit Ahead+1 posted passes that were not waited for. With 0, Sums and the sum over ranks follow each pass.
	Ahead int
	// Delay is by how much a run that the norm of iteration k ends is longer than k iterations. With 0, that norm is
	// the one of the field after k iterations.
	Delay int
	Stall Stall
	// AtStall, if not nil, says what a stall means with the given norm and the base of the goal: Stalled, Stagnated, or
	// "" for a run that goes on. Otherwise it means Stalled. It needs an Ahead of 0.
	AtStall func(ctx context.Context, norm, base float64) (StopReason, error)
}
