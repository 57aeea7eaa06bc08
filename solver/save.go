package solver

import (
	"context"
	"fmt"
	"math"
)

// Saver keeps the state of a rank so that a later Run can go on from it (see Start). Its calls come from the goroutine of Run.
type Saver interface {
	// Wanted says whether this rank wishes the state to be saved; once one does, all ranks save.
	Wanted() bool
	// Busy says whether this rank is still saving an earlier state; while one is, no rank begins another one.
	Busy() bool
	// Save takes the rows of the stripe, the field after sweeps sweeps, from the backend, and returns as soon as the sweeps may
	// go on. All ranks are called for the same sweeps. An error ends the run: what goes wrong later, in writing, does not.
	Save(ctx context.Context, sweeps int) error
}

// Start is where the loaded field stands: the zero value is the initial field.
type Start struct {
	Sweeps int
	// Norms are those of the last sweeps done, at least StopNorms or all. Earlier ones did not end the run.
	Norms []float64
}

// begin makes the state that of a run which has done the sweeps of Start.
func (r *run) begin() error {
	s := r.Start
	if s.Sweeps < 0 || len(s.Norms) > s.Sweeps || len(s.Norms) < min(s.Sweeps, StopNorms) {
		return fmt.Errorf("start after sweep %d with %d norms", s.Sweeps, len(s.Norms))
	}
	r.sweeps = s.Sweeps
	for i, norm := range s.Norms {
		r.judge(s.Sweeps-len(s.Norms)+i, norm)
	}
	if end := min(r.stop, r.MaxIterations); s.Sweeps > end {
		return fmt.Errorf("start after %d sweeps of a run that ends after %d", s.Sweeps, end)
	}
	r.saving.next = r.nextSave()
	return nil
}

// saving decides when to save. It is a function of the sweeps and of what settled blocks told, so all ranks come to the same.
type saving struct {
	next  int    // sweeps after which a state is due of itself; MaxInt for never
	due   bool   // a state is due as soon as nobody is busy
	busy  bool   // a rank may be at the state before
	since uint64 // blocks from this one on were swept after the state before was taken, so they speak of the next one
}

func (s *saving) hear(b Block, f Flags) {
	if b.Index < s.since {
		return
	}
	s.busy = f&FlagBusy != 0
	s.due = s.due || f&FlagSave != 0
}

func (r *run) nextSave() int {
	if r.SaveEvery == 0 || r.sweeps > math.MaxInt-r.SaveEvery {
		return math.MaxInt
	}
	return (r.sweeps/r.SaveEvery + 1) * r.SaveEvery
}

// save saves the state if that is due and nobody is at an earlier one. Norms may still be unknown; a state beyond the end that
// they turn out to bring is of no use, and the Saver learns of the end.
func (r *run) save(ctx context.Context) error {
	if r.Saver == nil || r.sweeps > r.end() {
		return nil
	}
	s := &r.saving
	if r.sweeps >= s.next {
		s.due = true
		s.next = r.nextSave()
	}
	if !s.due || s.busy {
		return nil
	}
	if err := r.timed(&r.times.Save, func() error { return r.Saver.Save(ctx, r.sweeps) }); err != nil {
		return fmt.Errorf("sweep %d: save the state: %w", r.sweeps-1, err)
	}
	s.due, s.busy, s.since = false, true, r.index
	return nil
}
