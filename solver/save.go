package solver

import (
	"context"
	"math"
)

// Saver saves the state of a rank so that a later Run can continue from it (see Start). Run calls it from its own
// goroutine.
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
	Sweeps int
	// Norms are the last norms of the sweeps done: at least StopNorms, or all there are. The norms before them did not
	// end the run.
	Norms []float64
	First float64 // the first norm of the run; 0 if there is none
}

// saving decides when to save. It depends only on the number of sweeps and on the flags of settled passes, so all ranks
// decide alike.
type saving struct {
	next   int    // sweeps after which the next regular save is due; MaxInt for never
	wanted bool   // a save is due as soon as no rank is busy
	busy   bool   // a rank may still be busy with the previous save
	since  uint64 // index of the first pass after the previous save; flags of earlier passes are out of date
}

// receive takes the flags that any rank sent with a settled pass.
func (s *saving) receive(p Pass, f Flags) {
	if p.Index < s.since {
		return
	}
	s.busy = f&FlagBusy != 0
	s.wanted = s.wanted || f&FlagSave != 0
}

// due reports whether to save now, after the given number of sweeps; every is the interval of regular saves, 0 for
// never.
func (s *saving) due(sweeps, every int) bool {
	if sweeps >= s.next {
		s.wanted = true
		s.next = nextSave(sweeps, every)
	}
	return s.wanted && !s.busy
}

// began records that a save was begun before the pass with the given index.
func (s *saving) began(pass uint64) { s.wanted, s.busy, s.since = false, true, pass }

// nextSave returns the number of sweeps after which the next regular save is due; every is the interval, 0 for never.
func nextSave(sweeps, every int) int {
	if every == 0 || sweeps > math.MaxInt-every {
		return math.MaxInt
	}
	return (sweeps/every + 1) * every
}
