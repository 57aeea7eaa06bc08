package solver

// StopReason says why a run ended.
type StopReason string

// The reasons.
const (
	Converged     StopReason = "converged"      // a norm met the tolerance
	Stalled       StopReason = "stalled"        // only rounding is left: the field does not change, or repeats itself
	MaxIterations StopReason = "max_iterations" //
	Interrupted   StopReason = "interrupted"    //
)

// stallSweeps is how many norms in a row must equal the norm two sweeps before them.
const stallSweeps = 100

// StopNorms is how many norms before it a StopRule has to see to judge the next one.
const StopNorms = stallSweeps + 1

// StopRule says, from the norms of a run alone, whether they end it. A run ends after sweep k+1, where k is the first
// sweep
//   - whose norm is exactly 0: the field has not changed, and will not;
//   - or whose norm is at most Tolerance;
//   - or whose norm equals that of two sweeps before to the last bit, as the stallSweeps-1 norms before it do.
//
// Exact norms fall with every sweep. Where rounding has the last word, the field ends in a fixed point or goes to and
// fro between two states, and never meets a tolerance below the norm of that.
type StopRule struct {
	Tolerance float64

	last, before float64 // norms; only those of seen sweeps count
	seen         int
	repeats      int // latest norms that equal the norm two sweeps before them
}

// Add takes the norm of the next sweep, and says why it ends the run; "" if it does not.
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

// mayStall reports whether norms that repeat may end the run within the next n sweeps.
func (s *StopRule) mayStall(n int) bool { return s.repeats > 0 && s.repeats+n >= stallSweeps }
