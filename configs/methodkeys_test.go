package configs

import "testing"

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
