package solver

import "time"

// StepKind says what a rank does in a Step.
type StepKind uint8

// The kinds of steps of a run by passes, and of one by cycles of multigrid. StepCycle and StepStage enclose others.
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
	StepInterpolate  // the way up from one mesh of full multigrid to the next
	StepCycle
	StepStage // the cycles on one of the coarser meshes of full multigrid
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
	case StepEdges, StepInterior, StepSums, StepDown, StepAgglomerated, StepUp, StepNorm, StepCG, StepInterpolate:
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
