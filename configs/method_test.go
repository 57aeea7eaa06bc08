package configs

import (
	"testing"

	"jacobi/solver"
)

// A method and a key that do not go together are refused, for each method and each key of methods. "" is no error.
func TestMethodsAndKeys(t *testing.T) {
	for _, c := range []struct {
		set               []string
		jacobi, multigrid string
	}{
		{set: []string{"solver.tolerance=0"}},
		{set: []string{"solver.max_iterations=1"}},
		{set: []string{"solver.acceleration=none"}},
		{set: []string{"solver.start=initial"}},
		{set: []string{"halo.depth=auto"}},
		{set: []string{"checkpoint.every=5", "checkpoint.dir=x"}},
		{set: []string{"checkpoint.every=5 sweeps", "checkpoint.dir=x"},
			multigrid: `checkpoint.every "5 sweeps": sweeps need solver.method jacobi, not multigrid; 5 alone counts ` +
				`cycles`},
		{set: []string{"solver.relative_tolerance=1e-8"}},
		{set: []string{"grid.dtype=float32"}},
		{set: []string{"halo.depth=3"},
			multigrid: "halo.depth 3: needs solver.method jacobi, not multigrid; write auto"},
		{set: []string{"solver.acceleration=cg"},
			jacobi: `solver.acceleration "cg": needs solver.method multigrid, not jacobi`},
		{set: []string{"solver.start=full"},
			jacobi: `solver.start "full": needs solver.method multigrid, not jacobi`},
		{set: []string{"checkpoint.every=5 cycles", "checkpoint.dir=x"},
			jacobi: `checkpoint.every "5 cycles": cycles need solver.method multigrid, not jacobi`},
		{set: []string{"grid.ny=64", "run.ranks=8"}},
	} {
		for method, want := range map[string]string{Jacobi: c.jacobi, Multigrid: c.multigrid} {
			got, err := Load(Options{Set: append([]string{"grid.dtype=float64", "solver.method=" + method}, c.set...)})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if err := Validate(got); err != nil {
				text = err.Error()
			}
			if text != want {
				t.Errorf("%s with %q:\ngot  %s\nwant %s", method, c.set, text, want)
			}
		}
	}
}

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
