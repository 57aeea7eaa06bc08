package e2e

import (
	"strings"
	"testing"
)

// Every method solves meshes that can hardly be coarsened, or not at all.
func TestSmallMeshes(t *testing.T) {
	t.Parallel()
	for method, most := range map[string]int{"jacobi": 1000, "multigrid": 8} {
		for _, size := range [][2]string{{"3", "3"}, {"4", "3"}, {"500", "5"}, {"9", "300"}} {
			keys := set("solver.method="+method, "grid.dtype=float64", "problem.preset=dirichlet", "output.picture=",
				"output.field=", "solver.tolerance=1e-7", "grid.nx="+size[0], "grid.ny="+size[1])
			got, _ := solve(t, append(keys, "-np", "1")...)
			if got.reason != "converged" && got.reason != "stalled" || got.sweeps > most {
				t.Errorf("%s, %v: %d iterations (%s)", method, size, got.sweeps, got.reason)
			}
		}
	}
}

// The launcher, its dry run and doctor name multigrid where Jacobi's method would take long, and warn of a tolerance
// that cycles do not meet.
func TestWordsOnMultigrid(t *testing.T) {
	long := set("grid.nx=100", "grid.ny=100", "problem.preset=dirichlet", "solver.tolerance=1e-8",
		"grid.dtype=float64", "solver.method=jacobi", "solver.max_iterations=10000", "output.picture=", "output.field=")
	const hint = "solver.method multigrid meets a tolerance in far less time, mostly in 5 to 20 cycles"
	for name, args := range map[string][]string{
		"run":    append([]string{"-np", "1"}, long...), // ends above its tolerance
		"dry":    append([]string{"-np", "1", "--dry-run"}, long...),
		"doctor": append([]string{"doctor", "-np", "1"}, long...),
	} {
		out := run(t, t.TempDir(), "launcher", args...)
		text := strings.Join(strings.Fields(out.stdout+out.stderr), " ")
		if want := map[string]int{"run": 4}[name]; out.code != want || !strings.Contains(text, hint) {
			t.Errorf("%s: exit code %d, want %s in\n%s", name, out.code, hint, text)
		}
	}
	args := append(append(long, set(cycling("solver.tolerance=1e-20")...)...), "-np", "1", "--dry-run")
	out := run(t, t.TempDir(), "launcher", args...)
	const warning = "# Warning: solver.tolerance 1e-20 is below what float64 attains on this mesh; " +
		"a larger one is met\n"
	if out.code != 0 || !strings.Contains(out.stdout, warning) {
		t.Errorf("exit code %d, want %s in\n%s", out.code, warning, out.stdout)
	}
}

// A source with an initial field of 0 makes updates beside fixed points that are far larger than the first ones.
func TestSourceBesideFixedPoints(t *testing.T) {
	t.Parallel()
	keys := cycling("problem.preset=dirichlet", "problem.left=neumann(0)", "problem.right=neumann(0)",
		"problem.top=neumann(0)", "problem.bottom=neumann(0)", "problem.source=1", "grid.nx=400", "grid.ny=400",
		"problem.fixed=ix == 30 and iy == 30")
	for _, more := range [][]string{nil, {"solver.start=full"}, {"solver.acceleration=none"}} {
		got, r := solve(t, append(set(append(keys, more...)...), "-np", "2")...)
		if got.reason != "converged" || r.Norm > 1e-8 {
			t.Errorf("%v: %s after %d cycles, norm %v", more, got.reason, got.sweeps, r.Norm)
		}
	}
}
