package solver

import (
	"context"
	"fmt"
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

// Sampler reads the field while a run goes on, for pictures and files beside the result. A run calls it from its own
// goroutine.
type Sampler interface {
	// Sample copies what it needs of the rows of the stripe from the backend and returns as soon as the sweeps may
	// continue. It is called for the same samples on all ranks, and the run does not end before a sample that it has
	// seen. An error ends the run, so errors in writing what was sampled are kept for later.
	Sample(ctx context.Context, s Sample) error
}

// Sample is the field at one moment of a run, the same on all ranks.
type Sample struct {
	Iterations int // that the field has been through
}

// Sampling is a Sampler and the samples that it gets.
type Sampling struct {
	Sampler Sampler
	// Every is the interval of its samples, the same on all ranks: the field after 0, Every, 2 Every, ... iterations. A
	// run that goes on from a saved state takes the samples that a run in one piece takes from there on, and that of
	// the state. If Every is 0, the Sampler gets the samples that ranks ask for.
	Every int
	// Wanted, if not nil, reports whether this rank asks for a sample. If any rank asks, all Samplings whose Every is 0
	// get one soon. It is called once a pass at most.
	Wanted func() bool
}

// Samples are the Samplings of a run: the same on all ranks, in the same order. An empty Samples costs nothing.
type Samples []Sampling

// wanted reports whether this rank asks for a sample.
func (s Samples) wanted() bool {
	for _, g := range s {
		if g.Wanted != nil && g.Wanted() {
			return true
		}
	}
	return false
}

// next returns the least number of iterations beyond the given one after which a regular sample is due; MaxInt for
// never.
func (s Samples) next(done int) int {
	next := math.MaxInt
	for _, g := range s {
		next = min(next, nextSave(done, g.Every))
	}
	return next
}

// due reports whether a sample is to be taken after the given number of iterations. asked reports whether a rank asks
// for one.
func (s Samples) due(done int, asked bool) bool {
	for _, g := range s {
		if g.due(done, asked) {
			return true
		}
	}
	return false
}

// take has the field sampled by those whose sample is due, as due has it, and w measures that.
func (s Samples) take(ctx context.Context, at Sample, asked bool, w *Watch) error {
	for _, g := range s {
		if !g.due(at.Iterations, asked) {
			continue
		}
		step := Step{Kind: StepSample, First: at.Iterations}
		if err := w.Do(step, func() error { return g.Sampler.Sample(ctx, at) }); err != nil {
			return fmt.Errorf("sample the field: %w", err)
		}
	}
	return nil
}

// due reports whether the Sampler gets a sample after the given number of iterations.
func (g Sampling) due(done int, asked bool) bool {
	if g.Every == 0 {
		return asked
	}
	return done%g.Every == 0
}
