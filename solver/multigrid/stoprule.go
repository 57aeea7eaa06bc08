package multigrid

import "jacobi/solver"

// stallCycles is the number of cycles in a row without a new least norm after which a run has stalled: only rounding is
// left.
const stallCycles = 4

// stopRule decides from the norms of a run alone when the run ends.
type stopRule struct {
	tolerance, relative float64

	first float64 // the first norm; 0 before it
	least float64
	since int // norms since the least one
	seen  bool
}

// Ends returns after how many cycles a run with these norms, of the fields from the initial one on, ends, and why. The
// reason is "" if no norm ends it.
func Ends(norms []float64, tolerance, relative float64) (cycles int, reason solver.StopReason) {
	rule := stopRule{tolerance: tolerance, relative: relative}
	for i, norm := range norms {
		if reason := rule.add(norm); reason != "" {
			return i, reason
		}
	}
	return 0, ""
}

// add takes the next norm. It returns the reason why the run ends with the field that has it, or "".
func (s *stopRule) add(norm float64) solver.StopReason {
	if s.first == 0 {
		s.first = norm
	}
	s.since++
	if !s.seen || norm < s.least {
		s.least, s.since, s.seen = norm, 0, true
	}
	switch {
	case norm == 0:
		return solver.Stalled
	case norm <= s.tolerance, norm <= s.relative*s.first:
		return solver.Converged
	case s.since >= stallCycles:
		return solver.Stalled
	}
	return ""
}
