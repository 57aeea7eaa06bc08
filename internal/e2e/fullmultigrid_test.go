package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
)

// starting are the keys of runs that begin with full multigrid.
func starting(keys ...string) []string {
	return cycling(append([]string{"solver.start=full"}, keys...)...)
}

// Full multigrid gives the same bits for any number of ranks, transport and kernel. The first meshes below that of the
// run are divided among the ranks, all others are held by each of them.
func TestFullMultigridGivesTheSameBits(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"fixed": {"grid.nx=1100", "grid.ny=1203", "problem.preset=dirichlet", "solver.tolerance=1e-4",
			"problem.source=sin(7*x)*y", "problem.fixed=abs(x-0.3) < 0.001 || abs(y-0.6) < 0.002 && x > 0.5",
			"problem.initial=x"},
		"periodic": {"grid.nx=350", "grid.ny=501", "solver.tolerance=1e-8"},
		"neumann": {"grid.nx=601", "grid.ny=301", "problem.preset=dirichlet", "problem.left=neumann(1)",
			"problem.top=neumann(x)", "problem.source=sin(7*x)*y", "grid.height=0.7", "problem.screening=2",
			"solver.tolerance=0", "solver.relative_tolerance=1e-7"},
	} {
		t.Run(name, func(t *testing.T) {
			want, _ := solve(t, append(set(starting(keys...)...), "-np", "1")...)
			initial, _ := solve(t, append(set(cycling(keys...)...), "-np", "1")...)
			norms, others := normsOf(t, want.history), normsOf(t, initial.history)
			if want.reason != "converged" || len(norms) != want.sweeps+1 || !(norms[0] < others[0]/2) {
				t.Fatalf("%d cycles (%s), norms %g, with the initial field %g", want.sweeps, want.reason, norms, others)
			}
			for _, more := range [][]string{
				{"-np", "1", "--set", "device.kernel=portable", "--set", "device.threads=3"},
				{"-np", "2", "--set", "halo.transport=nats"}, {"-np", "3"}, {"-np", "5"},
				{"-np", "5", "--set", "halo.transport=nats", "--set", "device.kernel=portable"},
			} {
				if got, _ := solve(t, append(set(starting(keys...)...), more...)...); got != want {
					t.Errorf("%v: %d cycles (%s), field %s; want %d (%s), %s; histories equal: %v", more, got.sweeps,
						got.reason, got.sha, want.sweeps, want.reason, want.sha, got.history == want.history)
				}
			}
		})
	}
}

// A run goes on from its checkpoint, with other ranks, to the answer of a run that did not stop. It does not begin
// again with full multigrid, and does not go on without the key.
func TestFullMultigridGoesOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	mesh := []string{"grid.nx=300", "grid.ny=200", "solver.tolerance=0"}
	keys := starting(append(mesh, "solver.max_iterations=6")...)
	want, _ := solve(t, append(set(keys...), "-np", "2")...)
	part := append(slices.Clone(keys), "checkpoint.every=2", "checkpoint.dir="+dir, "solver.max_iterations=3")
	if got, _ := solve(t, append(set(part...), "-np", "3")...); got.sweeps != 3 {
		t.Fatalf("%d cycles (%s)", got.sweeps, got.reason)
	}
	got, r := solve(t, append(set(keys...), "-np", "1", "--resume", dir)...)
	if got != want || r.ResumedAfter != 3 {
		t.Errorf("resumed after %d cycles: %d, field %s; want %d, %s; histories equal: %v", r.ResumedAfter, got.sweeps,
			got.sha, want.sweeps, want.sha, got.history == want.history)
	}
	out := run(t, t.TempDir(), "launcher", append(set(cycling(mesh...)...), "--resume", dir)...)
	if wanted := `the checkpoint sets solver.start to "full", this run does not set it`; out.code != 1 ||
		!strings.Contains(out.stderr, wanted) {
		t.Errorf("exit code %d, %q; want 1, %q", out.code, out.stderr, wanted)
	}
}

// GPUs give the bits of the CPU.
func TestFullMultigridOnGPUs(t *testing.T) {
	needGPU(t)
	fullMultigridOnGPUs(t, nil, "1", "2", "3", "5")
}

// The source of the kernels, compiled for the CPU, gives the bits of the CPU's own code.
func TestFullMultigridOnEmulatedGPUs(t *testing.T) {
	t.Parallel()
	env := libraryPath(emulatetest.Build(t))
	for _, r := range fullMultigridOnGPUs(t, env, "1", "3") {
		wantTransports(t, r, func(int, int) string { return "peer memory" })
	}
	t.Run("trace", func(t *testing.T) { traceOfEmulatedMultigrid(t, env) })
}

func fullMultigridOnGPUs(t *testing.T, env []string, ranks ...string) []report {
	keys := starting("grid.nx=230", "grid.ny=151", "problem.preset=dirichlet", "problem.left=neumann(1)",
		"problem.source=sin(7*x)*y", "problem.fixed=abs(x-0.5)<0.1 && abs(y-0.4)<0.02", "grid.height=0.7",
		"solver.tolerance=0", "solver.max_iterations=2")
	want, _ := solve(t, append(set(append(keys, "device.backend=cpu")...), "-np", "1")...)
	return sameOnGPUs(t, env, keys, want, ranks)
}
