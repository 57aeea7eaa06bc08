package configs

import "testing"

// A method and a key that do not go together are refused, for each method and each key of methods. "" is no error.
func TestMethodsAndKeys(t *testing.T) {
	const both = "chebyshev and multigrid have it, "
	for _, c := range []struct {
		set                          []string
		jacobi, chebyshev, multigrid string
	}{
		{set: []string{"solver.tolerance=0"}},
		{set: []string{"solver.max_iterations=1"}}, // which Chebyshev's plan refuses, as it depends on the mesh
		{set: []string{"solver.acceleration=none"}},
		{set: []string{"solver.start=initial"}},
		{set: []string{"halo.depth=auto"}},
		{set: []string{"checkpoint.every=5", "checkpoint.dir=x"}},
		{set: []string{"checkpoint.every=5 sweeps", "checkpoint.dir=x"}},
		{set: []string{"halo.depth=3"},
			multigrid: "halo.depth 3: solver.method multigrid has a depth of its own; auto is allowed"},
		{set: []string{"grid.dtype=float32"},
			chebyshev: `grid.dtype "float32": solver.method chebyshev needs float64`,
			multigrid: `grid.dtype "float32": solver.method multigrid needs float64`},
		{set: []string{"solver.relative_tolerance=1e-8"},
			jacobi: "solver.relative_tolerance 1e-08: solver.method " + both + "jacobi has not"},
		{set: []string{"solver.acceleration=cg"},
			jacobi:    `solver.acceleration "cg": solver.method multigrid has it, jacobi has not`,
			chebyshev: `solver.acceleration "cg": solver.method multigrid has it, chebyshev has not`},
		{set: []string{"solver.start=full"},
			jacobi:    `solver.start "full": solver.method multigrid has it, jacobi has not`,
			chebyshev: `solver.start "full": solver.method multigrid has it, chebyshev has not`},
		{set: []string{"checkpoint.every=5 cycles", "checkpoint.dir=x"},
			jacobi:    `checkpoint.every "5 cycles": solver.method multigrid has cycles, jacobi has not`,
			chebyshev: `checkpoint.every "5 cycles": solver.method multigrid has cycles, chebyshev has not`},
		{set: []string{"grid.ny=64", "run.ranks=8"},
			multigrid: "run.ranks 8: with solver.method multigrid each rank needs 8 rows, and grid.ny 64 allows " +
				"at most 4"},
	} {
		for method, want := range map[string]string{Jacobi: c.jacobi, Chebyshev: c.chebyshev, Multigrid: c.multigrid} {
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
