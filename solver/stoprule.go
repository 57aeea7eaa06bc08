package solver

// StopReason says why a run ended.
type StopReason string

// The reasons.
const (
	Converged     StopReason = "converged"      // a norm met the tolerance
	Stalled       StopReason = "stalled"        // only rounding is left: the field stays the same or alternates
	MaxIterations StopReason = "max_iterations" // the configured number of sweeps was done
	Interrupted   StopReason = "interrupted"    // a rank was asked to stop
)

// stallSweeps is the number of consecutive norms that must each equal the last but one norm before for a run to stall.
const stallSweeps = 100

// StopNorms is the number of preceding norms that a StopRule needs to judge the next one.
const StopNorms = stallSweeps + 1

// StopRule decides from the norms of a run alone when the run ends. A run ends after sweep k+1, where k is the first
// sweep with a norm
//   - whose norm is exactly 0: the field did not change, and never will;
//   - or whose norm is at most Tolerance;
//   - or whose norm and the stallSweeps-1 norms before it each equal, to the bit, the last but one norm before.
//
// In exact arithmetic norms fall with every sweep. Once only rounding is left, the field reaches a fixed point or
// alternates between two states, and its norm never meets a smaller tolerance.
type StopRule struct {
	Tolerance float64

	last, before float64 // the two newest norms
	seen         int     // norms added
	repeats      int     // newest norms in a row that equal the last but one norm before them
}

// Add takes the norm of the next sweep that has one. It returns the reason why this norm ends the run, or "" if it does
// not.
func (s *StopRule) Add(norm float64) StopReason {
	s.repeats++
	if s.seen < 2 || norm != s.before {
		s.repeats = 0
	}
	s.last, s.before = norm, s.last
	s.seen++
	switch {
	case norm == 0:
		return Stalled
	case norm <= s.Tolerance:
		return Converged
	case s.repeats >= stallSweeps:
		return Stalled
	}
	return ""
}

// mayStall reports whether repeated norms may end the run within the next n norms.
func (s *StopRule) mayStall(n int) bool { return s.repeats > 0 && s.repeats+n >= stallSweeps }
