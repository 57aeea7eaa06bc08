package solver

// stallSweeps is the number of norms in a row with norm[k] == norm[k-2] at which a run has stalled.
const stallSweeps = 100

// StopNorms is the number of preceding norms that Repeats needs to judge the next one.
const StopNorms = stallSweeps + 1

// Repeats is the Stall of sweeps: a norm and the stallSweeps-1 norms before it each equal, to the bit, the norm two
// sweeps earlier. In exact arithmetic norms fall with every sweep. Once only rounding is left, the field reaches a
// fixed point or alternates between two states, and its norm never meets a smaller tolerance.
type Repeats struct {
	last, before float64 // the two newest norms
	seen         int     // norms added
	repeats      int     // newest norms in a row that equal the last but one norm before them
}

// Add implements Stall.
func (s *Repeats) Add(norm float64) bool {
	s.repeats++
	if s.seen < 2 || norm != s.before {
		s.repeats = 0
	}
	s.last, s.before = norm, s.last
	s.seen++
	return s.repeats >= stallSweeps
}

// Within implements Stall.
func (s *Repeats) Within(n int) bool { return s.repeats > 0 && s.repeats+n >= stallSweeps }
