package e2e

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
)

// cycling are the keys of runs with multigrid, without files that the tests do not read.
func cycling(keys ...string) []string {
	return append([]string{"solver.method=multigrid", "grid.dtype=float64", "output.picture=", "output.field="},
		keys...)
}

// The answer of multigrid is the same for any number of ranks and any transport, and it is converged: a cycle divides
// the norm by more than 15, or, with fixed points inside, by more than 3.
func TestMultigridGivesTheSameBits(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"fixed": {"grid.nx=320", "grid.ny=330", "problem.preset=dirichlet", "solver.tolerance=1e-6",
			"problem.fixed=x > 0.3 && x < 0.31 || abs(y-0.6) < 0.002 && x > 0.5", "problem.initial=x"},
		"periodic": {"grid.nx=350", "grid.ny=501", "solver.tolerance=1e-8"},
		"neumann": {"grid.nx=601", "grid.ny=301", "problem.preset=dirichlet", "problem.left=neumann(1)",
			"problem.top=neumann(x)", "problem.source=sin(7*x)*y", "grid.height=0.7", "problem.screening=2",
			"solver.tolerance=0", "solver.relative_tolerance=1e-9"},
	} {
		t.Run(name, func(t *testing.T) {
			want, r := solve(t, append(set(cycling(keys...)...), "-np", "1")...)
			norms := normsOf(t, want.history)
			if want.reason != "converged" || len(norms) != want.sweeps+1 {
				t.Fatalf("%d cycles (%s), %d norms", want.sweeps, want.reason, len(norms))
			}
			for i := 2; i < len(norms); i++ {
				if least := map[bool]float64{true: 3, false: 15}[name == "fixed"]; !(norms[i] < norms[i-1]/least) {
					t.Errorf("cycle %d: norm %g after %g", i-1, norms[i], norms[i-1])
				}
			}
			if last := norms[len(norms)-1]; math.Abs(r.Norm-last) > 0 {
				t.Errorf("norm %g in the report, %g in the history", r.Norm, last)
			}
			for _, np := range []string{"2", "3", "5", "8"} {
				for _, transport := range []string{"p2p", "nats"} {
					got, _ := solve(t, append(set(cycling(append(keys, "halo.transport="+transport)...)...), "-np",
						np)...)
					if got != want {
						t.Errorf("np %s, %s: %d cycles (%s), field %s; want %d (%s), %s; histories equal: %v", np,
							transport,
							got.sweeps, got.reason, got.sha, want.sweeps, want.reason, want.sha,
							got.history == want.history)
					}
				}
			}
		})
	}
}

// A run that ended at max_iterations goes on from its checkpoint, with other ranks, to the answer of a run that did
// not stop. Jacobi's method does not go on from there.
func TestMultigridGoesOn(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) { multigridGoesOn(t) })
	t.Run("accelerated", func(t *testing.T) {
		multigridGoesOn(t, "problem.fixed=abs(x-0.3) < 0.1 && y > 0.3 && y < 0.31")
	})
}

func multigridGoesOn(t *testing.T, more ...string) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	keys := append(cycling("grid.nx=300", "grid.ny=200", "solver.relative_tolerance=1e-10", "solver.tolerance=0"),
		more...)
	want, _ := solve(t, append(set(keys...), "-np", "2")...)
	part := append(keys, "checkpoint.every=2", "checkpoint.dir="+dir, "solver.max_iterations=5")
	if got, _ := solve(t, append(set(part...), "-np", "3")...); got.sweeps != 5 || got.reason != "max_iterations" {
		t.Fatalf("%d cycles (%s)", got.sweeps, got.reason)
	}
	if sets := checkpoints(t, dir); len(sets) != 2 {
		t.Fatalf("checkpoints %v, want 2", sets)
	}
	got, r := solve(t, append(set(keys...), "-np", "1", "--resume", dir)...)
	if got != want || r.ResumedAfter != 5 {
		t.Errorf("resumed after %d cycles: %d, field %s; want %d, %s; histories equal: %v", r.ResumedAfter, got.sweeps,
			got.sha, want.sweeps, want.sha, got.history == want.history)
	}
	out := run(t, t.TempDir(), "launcher", append(set(append(more, "grid.dtype=float64", "grid.nx=300",
		"grid.ny=200")...), "--resume", dir)...)
	if wanted := `the checkpoint sets solver.method to "multigrid", this run does not set it`; out.code != 1 ||
		!strings.Contains(out.stderr, wanted) {
		t.Errorf("exit code %d, %q; want 1, %q", out.code, out.stderr, wanted)
	}
}

// SIGINT ends a run after a common cycle, and its files hold the field after that.
func TestMultigridStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := cycling("grid.nx=4097", "grid.ny=4097", "solver.tolerance=0", "solver.max_iterations=1000000000")
	l := startLive(t, dir, append(set(keys...), "-np", "2")...)
	l.waitFor(` cycles \(`)
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 130 {
		t.Fatalf("exit code %d, want 130\n%s", code, output)
	}
	r := readReport(t, filepath.Join(dir, "out"))
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := solve(t, append(set(append(keys, "solver.max_iterations="+strconv.Itoa(r.Sweeps))...), "-np", "1")...)
	if again.sha != r.FieldSHA256 || again.history != string(history) {
		t.Errorf("stopped after %d cycles (%s) with field %s; that many cycles give %s", r.Sweeps, r.StopReason,
			r.FieldSHA256, again.sha)
	}
}

// GPUs give the bits of the CPU.
func TestMultigridOnGPUs(t *testing.T) {
	needGPU(t)
	multigridOnGPUs(t, nil, "1", "2", "3", "5")
}

// The source of the kernels, compiled for the CPU, gives the bits of the CPU's own code.
func TestMultigridOnEmulatedGPUs(t *testing.T) {
	t.Parallel()
	for _, r := range multigridOnGPUs(t, libraryPath(emulatetest.Build(t)), "1", "2", "3") {
		wantTransports(t, r, func(int, int) string { return "peer memory" })
	}
}

// So they do if one GPU of four reaches the memory of no other.
func TestMultigridOnGPUsWithAndWithoutPeers(t *testing.T) {
	t.Parallel()
	env := libraryPath(emulatetest.Build(t))
	for _, r := range multigridOnGPUs(t, env, "4") {
		wantTransports(t, r, func(a, b int) string {
			if a == 3 || b == 3 {
				return "shared memory"
			}
			return "peer memory"
		})
	}
}

// Of GPUs on two nodes those of one node run multigrid, which takes less time; with a transport that a key names, all
// do. The bits are the same.
func TestMultigridOnGPUsOfTwoNodes(t *testing.T) {
	t.Parallel()
	needHosts(t)
	keys := set(cycling("grid.nx=65", "problem.preset=dirichlet", "device.backend=cuda")...)
	env := libraryPath(emulatetest.Build(t))
	want := map[string]string{} // hash of the field, by transport
	for transport, working := range map[string]int{"auto": 1, "nats": 2} {
		dir := t.TempDir()
		outs := wrapped(t, dir, pmi(2), func(_ int, cmd *exec.Cmd) *exec.Cmd {
			cmd.Env = append(cmd.Env, env...)
			return through(t, cmd, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
		}, append(keys, set("halo.transport="+transport)...)...)
		all := together(outs)
		if all.code != 0 {
			t.Fatalf("%s: exit code %d\n%s", transport, all.code, all.stderr)
		}
		r := readReport(t, filepath.Join(dir, "out"))
		idle := "multigrid runs on 1 of 2 ranks: rows between nodes travel through the hosts"
		if len(r.Ranks) != working || strings.HasPrefix(r.Idle, idle) != (working == 1) ||
			strings.Contains(all.stdout, idle) != (working == 1) {
			t.Errorf("%s: %d ranks work, want %d; %q in\n%s", transport, len(r.Ranks), working, r.Idle, all.stdout)
		}
		want[transport] = r.FieldSHA256
	}
	if want["auto"] != want["nats"] {
		t.Errorf("the fields differ: %v", want)
	}
	dry := runWith(t, env, t.TempDir(), "launcher", append(keys, "-np", "2", "--dry-run", "--host",
		"localhost:1,node7:1")...)
	for _, w := range []string{"1 rank on localhost: ", "\n# multigrid runs on 1 of 2 ranks: ", "\n  ranks: 2\n"} {
		if !strings.Contains(dry.stdout, w) {
			t.Errorf("dry run: exit code %d, no %q in\n%s%s", dry.code, w, dry.stdout, dry.stderr)
		}
	}
}

// wantTransports checks how the ranks of a run exchange rows.
func wantTransports(t *testing.T, r report, want func(a, b int) string) {
	t.Helper()
	for _, rank := range r.Ranks {
		for side, link := range rank.Transports {
			if w := want(rank.Rank, link.Neighbour); link.Transport != w {
				t.Errorf("rank %d, %s: %s (%s), want %s", rank.Rank, side, link.Transport, link.Why, w)
			}
		}
	}
}

// A killed rank ends a run whose GPUs wait for its rows.
func TestKilledRankEndsMultigridOnEmulatedGPUs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	keys := cycling("grid.nx=400", "grid.ny=400", "problem.preset=dirichlet", "solver.tolerance=0",
		"solver.max_iterations=1000000000", "device.backend=cuda")
	cmd := command(ctx, t.TempDir(), "launcher", append(set(keys...), "-np", "3")...)
	cmd.Env = append(cmd.Env, libraryPath(emulatetest.Build(t))...)
	l := startCommand(t, cmd)
	l.waitFor(`of \d+ cycles .*, norm \d`)
	pids := l.allRanks(3)
	if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if code != 1 || !regexp.MustCompile(`rank \d .*killed`).MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and the killed rank named", code, output)
	}
	l.leavesNothing()
}

func multigridOnGPUs(t *testing.T, env []string, ranks ...string) []report {
	t.Helper()
	keys := cycling("grid.nx=230", "grid.ny=151", "problem.preset=dirichlet", "problem.left=neumann(1)",
		"problem.source=sin(7*x)*y", "problem.fixed=abs(x-0.5)<0.1 && abs(y-0.4)<0.02", "grid.height=0.7",
		"solver.tolerance=0", "solver.relative_tolerance=1e-5")
	want, _ := solve(t, append(set(append(keys, "device.backend=cpu")...), "-np", "1")...)
	if want.reason != "converged" {
		t.Fatalf("%d cycles (%s)", want.sweeps, want.reason)
	}
	return sameOnGPUs(t, env, keys, want, ranks)
}

// sameOnGPUs checks that runs on GPUs, or in env on what stands for them, give the wanted answer. It returns their
// reports.
func sameOnGPUs(t *testing.T, env, keys []string, want answer, ranks []string) (reports []report) {
	t.Helper()
	for _, np := range ranks {
		got, r := solveWith(t, env, append(set(append(keys, "device.backend=cuda")...), "-np", np)...)
		if got != want {
			t.Errorf("np %s: %d cycles (%s), field %s; want %d (%s), %s; histories equal: %v", np, got.sweeps,
				got.reason, got.sha, want.sweeps, want.reason, want.sha, got.history == want.history)
		}
		for _, rank := range r.Ranks {
			if !strings.HasPrefix(rank.Device, "cuda") {
				t.Errorf("np %s: rank %d on %q", np, rank.Rank, rank.Device)
			}
		}
		reports = append(reports, r)
	}
	return reports
}
