package solver

import (
	"context"
	"time"
)

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

// Traits are the properties of an Iteration that Drive needs. They are the same on all ranks, except for Lag.
type Traits struct {
	Unit  string  // what an iteration is called in errors, such as "sweep"
	Norms Cadence // which iterations have a norm
	Lag   int     // passes between a pass and the call of Sums, as in Limits
	// Ahead is the number of passes that may be done before the norms of the oldest of them are waited for. The Reducer
	// must admit Ahead+1 posted passes that were not waited for. With 0, Sums and the sum over ranks follow each pass.
	Ahead int
	// If the norm of iteration k ends the run, it stops after k+Delay iterations. With 0, that norm is the one of the
	// field after k iterations.
	Delay int
	Stall Stall
	// AtStall, if not nil, returns the reason why a stall with the given norm, in a run with the goal g, ends the run:
	// Stalled, Stagnated, or "" to go on. If nil, the reason is Stalled. It needs an Ahead of 0.
	AtStall func(ctx context.Context, norm float64, g Goal) (StopReason, error)
}

// StepKind is the kind of a Step.
type StepKind uint8

// The kinds of steps of a run by passes, and of one by cycles of multigrid. StepCycle encloses others.
const (
	StepEdges    StepKind = iota // Sweeper.Edges
	StepInterior                 // Sweeper.Interior, which ends a pass
	StepSums                     // Sweeper.Sums
	StepPost                     // Exchange.Post
	StepWait                     // Exchange.Wait
	StepPostNorm                 // Reducer.Post
	StepWaitNorm                 // Reducer.Wait
	StepSave                     // Saver.Save
	StepSample                   // Sampler.Sample

	StepDown         // the first half of a cycle on a level
	StepAgglomerated // the solution on the coarsest levels
	StepUp           // the second half of a cycle on a level
	StepHalos        // rows of a level go to the neighbours and come from them
	StepGather       // every rank gets all rows of a level
	StepNorm         // the sum of the norm, of this rank
	StepReduce       // Reducer.Post and Reducer.Wait
	StepCG           // a part of a step of conjugate gradients
	StepCycle
	StepAggregate // the set-up of aggregates
	stepKinds
)

// Valid reports whether k is one of the kinds.
func (k StepKind) Valid() bool { return k < stepKinds }

// Step is something that a rank does within Drive. Fields that do not describe its kind are 0.
type Step struct {
	Kind   StepKind
	Number uint64 // of the pass, the exchange, the sum over ranks, the cycle or the stage
	First  int    // the first sweep of the pass; of a state or sample, the sweeps done
	Sweeps int    // of the pass
	Level  int    // of multigrid
}

// Times are the wall-clock times of one rank within Drive, by the clock of the host. A device may sweep while the host
// waits.
type Times struct {
	Total    time.Duration // from the first sweep to the last
	Compute  time.Duration // in the sweeper: sweeping, or launching sweeps and waiting for their sums
	HaloWait time.Duration // sending edge rows, and waiting for those of neighbours
	NormWait time.Duration // posting sums, and waiting for those of other ranks
	Save     time.Duration // copying the state for the Saver
	Sample   time.Duration // in Samplers

	Exchanges uint64 // of halos, received
}

// Share is the part of Times to which the time of a step is added.
type Share uint8

// The parts of Times. Steps that enclose others are in none.
const (
	ShareNone Share = iota
	ShareCompute
	ShareHaloWait
	ShareNormWait
	ShareSave
	ShareSample
)

// Share returns the part of Times to which steps of this kind are added.
func (k StepKind) Share() Share {
	switch k {
	case StepEdges, StepInterior, StepSums, StepDown, StepAgglomerated, StepUp, StepNorm, StepCG, StepAggregate:
		return ShareCompute
	case StepPost, StepWait, StepHalos, StepGather:
		return ShareHaloWait
	case StepPostNorm, StepWaitNorm, StepReduce:
		return ShareNormWait
	case StepSave:
		return ShareSave
	case StepSample:
		return ShareSample
	}
	return ShareNone
}

// OnStep is called when a step has ended, in the goroutine of Drive.
type OnStep func(s Step, start time.Time, took time.Duration)

// Watch measures the steps of a run. All calls come from one goroutine.
type Watch struct {
	Times
	OnStep OnStep // nil if nobody wants to know the steps
}

// End ends a step that began at start. It is meant for defer.
func (w *Watch) End(s Step, start time.Time) {
	took := time.Since(start)
	switch s.Kind.Share() {
	case ShareCompute:
		w.Compute += took
	case ShareHaloWait:
		w.HaloWait += took
	case ShareNormWait:
		w.NormWait += took
	case ShareSave:
		w.Save += took
	case ShareSample:
		w.Sample += took
	}
	if w.OnStep != nil {
		w.OnStep(s, start, took)
	}
}

// Do measures f as a step.
func (w *Watch) Do(s Step, f func() error) error {
	defer w.End(s, time.Now())
	return f()
}

// WorkKind is the kind of a Work.
type WorkKind uint8

// The kinds of work: kernels, waits for neighbours, and copies.
const (
	WorkStripe   WorkKind = iota // a pass over the whole stripe
	WorkEdges                    // a pass over the edges that neighbours read
	WorkInterior                 // a pass over the rows between
	WorkDown                     // the first half of a cycle on a level
	WorkTail                     // the solution on the coarsest levels
	WorkUp                       // the second half of a cycle on a level
	WorkHandOn                   // a kernel writes edge rows into the halos that they fill
	WorkAwait                    // a wait for rows of neighbours, and copies of them to their places
	WorkToPeer                   // edge rows are copied into a neighbour's halo
	WorkToHost                   // rows are copied to the host
	WorkFromHost                 // rows are copied from the host
	WorkSums                     // the sums of a pass are copied to the host
	WorkCG                       // a part of a step of conjugate gradients
	workKinds
)

// Valid reports whether k is one of the kinds.
func (k WorkKind) Valid() bool { return k < workKinds }

// WorkQueues is the largest number of queues of a device. Work in one queue is done in order.
const WorkQueues = 2

// Work is something that a device does, in one of its queues. Fields that do not describe its kind are 0.
type Work struct {
	Kind   WorkKind
	Queue  int
	Number uint64 // of the pass or the exchange
	First  int    // the first sweep of the pass
	Sweeps int    // of the pass
	Level  int    // of multigrid
	Rows   int    // copied
}

// OnWork takes work that a device has done. Start is by the clock of the host, which was compared with the device's;
// took is by the device's clock. unit is the pass or cycle, as a trace counts them.
type OnWork func(w Work, unit int, start time.Time, took time.Duration)
