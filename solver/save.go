package solver

import (
	"context"
	"math"
)

// Saver keeps the state of a rank so that a later Run can go on from it (see Start). Its calls come from the goroutine
// of Run.
type Saver interface {
	// Wanted says whether this rank wishes the state to be saved; once one does, all ranks save.
	Wanted() bool
	// Busy says whether this rank is still saving an earlier state; while one is, no rank begins another one.
	Busy() bool
	// Save takes the rows of the stripe, the field after sweeps sweeps, from the backend, and returns as soon as the
	// sweeps may go on. All ranks are called for the same sweeps. An error ends the run: what goes wrong later, in
	// writing, does not.
	Save(ctx context.Context, sweeps int) error
}

// Start is where the loaded field stands: the zero value is the initial field.
type Start struct {
	Sweeps int
	// Norms are those of the last sweeps done, at least StopNorms or all. Earlier ones did not end the run.
	Norms []float64
}

// saving decides when to save. It is a function of the sweeps and of what settled passes told, so all ranks come to the
// same.
type saving struct {
	next   int    // sweeps after which a state is due of itself; MaxInt for never
	wanted bool   // a state is due as soon as nobody is busy
	busy   bool   // a rank may be at the state before
	since  uint64 // passes from this one on were swept after the state before was taken, so they speak of the next one
}

// hear takes the flags of all ranks that came with a settled pass.
func (s *saving) hear(p Pass, f Flags) {
	if p.Index < s.since {
		return
	}
	s.busy = f&FlagBusy != 0
	s.wanted = s.wanted || f&FlagSave != 0
}

// due reports whether the state after so many sweeps is to be saved now, where one is saved every so many.
func (s *saving) due(sweeps, every int) bool {
	if sweeps >= s.next {
		s.wanted = true
		s.next = nextSave(sweeps, every)
	}
	return s.wanted && !s.busy
}

// began notes that a state was taken before the pass with the given index.
func (s *saving) began(pass uint64) { s.wanted, s.busy, s.since = false, true, pass }

// nextSave returns after how many sweeps the next state is due, if one is every so many.
func nextSave(sweeps, every int) int {
	if every == 0 || sweeps > math.MaxInt-every {
		return math.MaxInt
	}
	return (sweeps/every + 1) * every
}
