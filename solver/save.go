package solver

import (
	"context"
	"math"
)

// Saver saves the state of a rank so that a later run can continue from it (see Start). Drive calls it from
// its own goroutine.
type Saver interface {
	// Wanted reports whether this rank asks for the state to be saved. All ranks save if any rank asks.
	Wanted() bool
	// Busy reports whether this rank is still saving an earlier state. No rank begins a save while any rank is busy.
	Busy() bool
	// Save copies the rows of the stripe, the field after the given number of sweeps, from the backend, and returns as
	// soon as the sweeps may continue. It is called after the same sweeps on all ranks. An error ends the run; errors
	// after the return, in writing the state, do not.
	Save(ctx context.Context, sweeps int) error
}

// Start describes the loaded field. The zero value is the initial field.
type Start struct {
	Iterations int
	// Norms are the last norms of the sweeps done: at least StopNorms, or all there are. The norms before them did not
	// end the run.
	Norms []float64
}

// saving decides when to save. It depends only on the number of iterations and on the flags of settled passes, so all
// ranks decide alike.
type saving struct {
	every  int    // iterations from one regular save to the next; 0 for never
	next   int    // iterations after which the next regular save is due; MaxInt for never
	wanted bool   // a save is due as soon as no rank is busy
	busy   bool   // a rank may still be busy with the previous save
	since  uint64 // the first pass after the previous save; flags of earlier passes are out of date
}

// newSaving returns the saving of a run that has done some iterations.
func newSaving(iterations, every int) saving {
	return saving{every: every, next: nextSave(iterations, every)}
}

// receive takes the flags that any rank sent with a settled pass.
func (s *saving) receive(pass uint64, f Flags) {
	if pass < s.since {
		return
	}
	s.busy = f&FlagBusy != 0
	s.wanted = s.wanted || f&FlagSave != 0
}

// due reports whether to save now, after the given number of iterations.
func (s *saving) due(iterations int) bool {
	if iterations >= s.next {
		s.wanted, s.next = true, nextSave(iterations, s.every)
	}
	return s.wanted && !s.busy
}

// began records that a save was begun before the given pass.
func (s *saving) began(pass uint64) { s.wanted, s.busy, s.since = false, true, pass }

// nextSave returns the number of iterations after which the next regular save is due; every is the interval, 0 for
// never.
func nextSave(iterations, every int) int {
	if every == 0 || iterations > math.MaxInt-every {
		return math.MaxInt
	}
	return (iterations/every + 1) * every
}
