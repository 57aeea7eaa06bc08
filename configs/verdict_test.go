package configs

import (
	"testing"

	"jacobi/solver"
)

// A run misses its tolerance only if it was to meet one: not the benchmark with its own, not without a tolerance, and
// not multigrid with the default one if only rounding is left.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		set    []string
		reason solver.StopReason
		want   Verdict
	}{
		{nil, solver.MaxIterations, Done},
		{nil, solver.Converged, Met},
		{nil, solver.Interrupted, Interrupted},
		{[]string{"solver.tolerance=1e-3"}, solver.MaxIterations, Missed},
		{[]string{"solver.tolerance=1e-3"}, solver.Stalled, Missed},
		{[]string{"solver.tolerance=1e-3"}, solver.Interrupted, Interrupted},
		{[]string{"solver.tolerance=1e-3"}, "", Done}, // launcher probe does no iteration
		{[]string{"solver.tolerance=0"}, solver.MaxIterations, Done},
		{[]string{"solver.tolerance=0"}, solver.Stalled, Done},
		{[]string{"problem.preset=dirichlet"}, solver.MaxIterations, Missed},
		{[]string{"problem.preset=dirichlet"}, solver.Stalled, Met}, // multigrid has proven the floor of rounding
		{[]string{"problem.preset=dirichlet"}, solver.Stagnated, Missed},
		{[]string{"problem.preset=dirichlet", "solver.method=jacobi"}, solver.Stalled, Missed},
		{[]string{"problem.preset=dirichlet", "solver.relative_tolerance=1e-8"}, solver.Stalled, Missed},
		{[]string{"problem.preset=gtc2019"}, solver.Stalled, Done},
		{[]string{"problem.preset=gtc2019", "solver.method=multigrid"}, solver.Stalled, Met},
		{[]string{"problem.preset=dirichlet", "solver.tolerance=0"}, solver.MaxIterations, Done},
	} {
		cfg, err := Load(Options{Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Solver.Verdict(c.reason); got != c.want {
			t.Errorf("%q, %s: %s, want %s", c.set, c.reason, got, c.want)
		}
		again, err := passed(cfg)
		if err != nil || again.Solver.IterationsAsked() != cfg.Solver.IterationsAsked() ||
			again.Solver.Verdict(c.reason) != c.want {
			t.Errorf("%q: the ranks disagree with the launcher, %v", c.set, err)
		}
	}
}
