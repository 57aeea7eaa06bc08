package configs

import "jacobi/solver"

// Verdict says whether a run did what it was to do.
type Verdict string

// The verdicts.
const (
	Met         Verdict = "met"         // a norm met the tolerance; the default one also at the floor of rounding
	Missed      Verdict = "missed"      // the run was to meet a tolerance, and did not
	Done        Verdict = "done"        // the iterations that were asked for are done
	Interrupted Verdict = "interrupted" // a signal or a time limit ended the run
)

// Verdict judges a run that ended for the given reason. The default tolerance is met at the floor of rounding by a
// method whose runs prove it before they stall.
func (s Solver) Verdict(reason solver.StopReason) Verdict {
	switch {
	case reason == solver.Interrupted:
		return Interrupted
	case reason == solver.Converged,
		reason == solver.Stalled && s.DefaultTolerance && s.Entry().Floor:
		return Met
	case reason != "" && !s.IterationsAsked():
		return Missed
	}
	return Done
}
