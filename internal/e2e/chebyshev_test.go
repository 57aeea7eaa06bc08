package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"jacobi/internal/cpu"
)

// weighing are the keys of runs with Chebyshev's iteration, without files that the tests do not read.
func weighing(keys ...string) []string {
	return append([]string{"solver.method=chebyshev", "grid.dtype=float64", "solver.max_iterations=1000000",
		"output.picture=", "output.field="}, keys...)
}

// The answer of Chebyshev's iteration is the same for any number of ranks, transport, depth and kernel. The history has
// a line for each sweep with a norm.
func TestChebyshevGivesTheSameBits(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		sha  string // of the field; the same on every machine
	}{
		"fixed": {[]string{"grid.nx=130", "grid.ny=140", "problem.preset=dirichlet", "solver.tolerance=1e-6",
			"problem.fixed=x > 0.3 && x < 0.35 || abs(y-0.6) < 0.02 && x > 0.5", "problem.initial=x"},
			"06cd47ea15ffe5410e1a2ea84fc8f171bcc664770f36b2b3aa7884b6042416e3"},
		"periodic": {[]string{"grid.nx=200", "grid.ny=202", "solver.tolerance=1e-8"},
			"682c98976ecaae94ddb2310c6afd60a13da61137a65ca51d6b5ad8529a2a258c"},
		"neumann": {[]string{"grid.nx=203", "grid.ny=101", "problem.preset=dirichlet", "problem.left=neumann(1)",
			"problem.top=neumann(x)", "problem.source=sin(7*x)*y", "grid.height=0.7", "problem.screening=2",
			"solver.tolerance=0", "solver.relative_tolerance=1e-9"},
			"15a106125376f77a0a4b93fd2a4273e565b7ab1d6b4d81a8b2631030687ace15"},
		"periodic columns": {[]string{"grid.nx=66", "grid.ny=80", "problem.preset=dirichlet", "problem.left=periodic",
			"problem.right=periodic", "problem.top=sin(6*x)", "solver.tolerance=1e-9"},
			"cba635f50ce171513902421790e151bea995e64946c9c8daea877e259e06bb0f"},
	} {
		t.Run(name, func(t *testing.T) {
			want, r := solve(t, append(set(weighing(c.keys...)...), "-np", "1")...)
			lines := strings.Split(strings.TrimSpace(want.history), "\n")
			last := fmt.Sprintf("%d,%.17g", want.sweeps-1, r.Norm)
			if want.reason != "converged" || lines[len(lines)-1] != last || (want.sweeps-1)%(len(lines)-2) != 0 {
				t.Fatalf("%d sweeps (%s), norm %g, history %q", want.sweeps, want.reason, r.Norm, want.history)
			}
			if want.sha != c.sha {
				t.Errorf("field %s, want %s", want.sha, c.sha)
			}
			for i, np := range []string{"2", "3", "5"} {
				for j, transport := range []string{"p2p", "nats", "direct"} {
					kernel := cpu.Kernels()[(i+j)%len(cpu.Kernels())]
					keys := append(c.keys, "halo.transport="+transport, "device.kernel="+kernel,
						"halo.depth="+[]string{"auto", "1", "2", "5", "7"}[(i+2*j)%5])
					if got, _ := solve(t, append(set(weighing(keys...)...), "-np", np)...); got != want {
						t.Errorf("np %s, %v: %d sweeps (%s), field %s; want %d (%s), %s; histories equal: %v", np, keys,
							got.sweeps, got.reason, got.sha, want.sweeps, want.reason, want.sha,
							got.history == want.history)
					}
				}
			}
		})
	}
}

// A run that ended at max_iterations goes on from its checkpoint, with other ranks, to the answer of a run that did not
// stop. max_iterations counts whole quarters of cycles.
func TestChebyshevGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	keys := weighing("grid.nx=130", "grid.ny=120", "solver.relative_tolerance=1e-10", "solver.tolerance=0")
	want, _ := solve(t, append(set(keys...), "-np", "2")...)
	part := append(keys, "checkpoint.every=300", "checkpoint.dir="+dir, "solver.max_iterations=700")
	if got, _ := solve(t, append(set(part...), "-np", "3")...); got.sweeps != 646 || got.reason != "max_iterations" {
		t.Fatalf("%d sweeps (%s)", got.sweeps, got.reason)
	}
	if sets := checkpoints(t, dir); len(sets) != 2 {
		t.Fatalf("checkpoints %v, want 2", sets)
	}
	got, r := solve(t, append(set(keys...), "-np", "1", "--resume", dir)...)
	if got != want || r.ResumedAfter != 646 {
		t.Errorf("resumed after %d sweeps: %d, field %s; want %d, %s; histories equal: %v", r.ResumedAfter, got.sweeps,
			got.sha, want.sweeps, want.sha, got.history == want.history)
	}
	for wanted, more := range map[string][]string{
		"solver.max_iterations 600: the checkpoint has 646 sweeps behind it": {"solver.max_iterations=600"},
		"the run would have ended (converged) after 1 sweeps, and the checkpoint has 646 behind it": {
			"solver.tolerance=100"},
	} {
		out := run(t, t.TempDir(), "launcher", append(set(append(keys, more...)...), "--resume", dir)...)
		if out.code != 1 || !strings.Contains(out.stderr, wanted) {
			t.Errorf("exit code %d, %q; want 1, %q", out.code, out.stderr, wanted)
		}
	}
}

// A request to stop ends a run after a common quarter of a cycle, and its files hold the field after that.
func TestChebyshevStops(t *testing.T) {
	dir := t.TempDir()
	keys := weighing("grid.nx=600", "grid.ny=601", "solver.tolerance=0")
	out := run(t, dir, "launcher", append(set(keys...), "-np", "2", "--timeout", "1s")...)
	if out.code != 124 && out.code != 0 { // 0: only rounding was left before
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	r := readReport(t, filepath.Join(dir, "out"))
	again, _ := solve(t, append(set(append(keys, "solver.max_iterations="+strconv.Itoa(r.Sweeps+1))...), "-np", "1")...)
	if again.sha != r.FieldSHA256 || again.sweeps != r.Sweeps {
		t.Errorf("stopped after %d sweeps (%s) with field %s; a limit gives %d, %s", r.Sweeps, r.StopReason,
			r.FieldSHA256, again.sweeps, again.sha)
	}
}

// What Chebyshev's iteration cannot do is refused before a rank starts.
func TestChebyshevRefuses(t *testing.T) {
	for wanted, keys := range map[string][]string{
		"solver.max_iterations 1000: a quarter of a cycle has 1025 sweeps on this mesh, and a norm follows: at least " +
			"1026 are wanted": {"grid.nx=1025", "grid.ny=1025", "solver.max_iterations=1000"},
		`grid.dtype "float32": solver.method chebyshev needs float64`: {"grid.dtype=float32"},
		"problem.screening": {"grid.nx=64", "grid.ny=64", "problem.left=periodic", "problem.right=periodic"},
	} {
		out := run(t, t.TempDir(), "launcher", set(weighing(keys...)...)...)
		if out.code != 1 && out.code != 2 || !strings.Contains(out.stderr, wanted) {
			t.Errorf("%v: exit code %d, %q; want %q", keys, out.code, out.stderr, wanted)
		}
	}
}
