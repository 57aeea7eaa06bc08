package solver

// StopReason says why a run ended.
type StopReason string

// The reasons.
const (
	Converged     StopReason = "converged"      // a norm met the goal, or no point changes at all
	Stalled       StopReason = "stalled"        // only rounding is left: the field stays the same or alternates
	Stagnated     StopReason = "stagnated"      // norms no longer fall, and are above what rounding leaves
	MaxIterations StopReason = "max_iterations" // the configured number of sweeps was done
	Interrupted   StopReason = "interrupted"    // a rank was asked to stop
)

// StopRule decides from the norms of a run alone when the run ends: with a norm that meets the goal, that is exactly 0,
// or with which the run has stalled. Updates after a norm of 0 are too small for any norm to show.
type StopRule struct {
	Goal
	Stall Stall
	seen  bool // a norm was added
}

// Stall tells by norms whether a run has stalled.
type Stall interface {
	// Add takes the next norm and reports whether the run has stalled with it.
	Add(norm float64) bool
	// Within reports whether the run may stall within the next n norms.
	Within(n int) bool
}

// Add takes the next norm. It returns the reason why this norm ends the run, or "" if it does not.
func (r *StopRule) Add(norm float64) StopReason {
	first := !r.seen
	if r.seen = true; r.Base == 0 {
		r.Base = norm
	}
	stalled := r.Stall.Add(norm)
	switch {
	case r.Met(norm), norm == 0 && first:
		return Converged
	case norm == 0 || stalled:
		return Stalled
	}
	return ""
}
