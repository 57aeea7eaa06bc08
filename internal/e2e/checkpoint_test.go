package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
)

// long is the problem of a run that lasts about a second.
var long = []string{"grid.nx=130", "grid.ny=270", "solver.tolerance=0", "solver.max_iterations=6000", "output.field=",
	"output.picture="}

// checkpoints returns the sets in a directory, the oldest first.
func checkpoints(t *testing.T, dir string) []string {
	t.Helper()
	sets, err := filepath.Glob(filepath.Join(dir, "sweep-*"))
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

// saved runs long with np ranks and checkpoints in dir, and returns the answer. It keeps the newest checkpoint from
// which sweeps remain, and the one before it. Only the checkpoint at the end of a run is sure to be there, as a slow
// disk makes those during a run rarer: so the sweeps are divided among three runs.
func saved(t *testing.T, dir string, np string, settings ...string) (got answer) {
	t.Helper()
	every := append(append(settings, long...), "checkpoint.every=500", "checkpoint.keep=3", "checkpoint.dir="+dir)
	var again []string
	for _, end := range []string{"2000", "4000", "6000"} {
		args := append(set(append(every, "solver.max_iterations="+end)...), "-np", np)
		got, _ = solve(t, append(args, again...)...)
		again = []string{"--restart"}
	}
	sets := checkpoints(t, dir)
	if len(sets) != 3 || !strings.HasPrefix(filepath.Base(sets[2]), "sweep-000000006000-") {
		t.Fatalf("checkpoints %v, want 3, the last after 6000 sweeps", sets)
	}
	if err := os.RemoveAll(sets[2]); err != nil {
		t.Fatal(err)
	}
	return got
}

// resumes resumes long from each checkpoint, with other ranks and keys, which must give the answer of a run that never
// stopped.
func resumes(t *testing.T, want answer, dir string, ways map[string][]string) {
	t.Helper()
	for np, keys := range ways {
		got, r := solve(t, append(onRanks(np, with(long, keys...)...), "--resume", dir)...)
		same(t, got, want, filepath.Base(dir), np, keys)
		if r.ResumedAfter < 500 {
			t.Errorf("np %s %v: resumed after %d sweeps", np, keys, r.ResumedAfter)
		}
	}
}

// A run that is resumed with another number of ranks, balance, transport, depth and kernel has the answer of a run that
// never stopped.
func TestResumeGivesTheSameBits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	want, _ := solve(t, onRanks(1, long...)...)
	same(t, saved(t, dir, "4", "halo.transport=p2p", "run.balance=4,1,2,3"), want, "with checkpoints")
	resumes(t, want, dir, map[string][]string{
		"3": {"halo.transport=nats", "halo.depth=2", "run.balance=auto"},
		"5": {"halo.transport=p2p", "device.kernel=portable", "halo.depth=1"},
		"2": {"run.balance=1,5"},
	})
	// A single rank can resume, too, and max_iterations may be larger.
	more := with(long, "solver.max_iterations=6100")
	want, _ = solve(t, onRanks(2, more...)...)
	out := t.TempDir()
	mustRun(t, out, "jacobi-rank", set(append(more, "checkpoint.resume="+dir)...)...)
	got, _ := answerIn(t, filepath.Join(out, "out"))
	same(t, got, want, "alone")
}

// A checkpoint from which the run cannot resume, and a place that cannot be written, are refused before a rank starts.
func TestCheckpointRefusals(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	dir, file := filepath.Join(work, "checkpoints"), filepath.Join(work, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	short := with(long, "solver.max_iterations=20")
	mustRun(t, work, "launcher", onRanks(2, with(short, "checkpoint.every=1h", "checkpoint.dir="+dir)...)...)
	one := checkpoints(t, dir)[0]
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--resume", dir, "--set", "problem.left=0"},
			`checkpoint.resume "` + dir + `": the checkpoint sets problem.left to "sin(2 * float32(pi) * iy / ` +
				`(ny - 1))", this run to "0"`},
		{[]string{"--resume", dir, "--set", "solver.max_iterations=10"},
			`solver.max_iterations 10: the checkpoint already has `},
		{[]string{"--resume", dir, "--set", "solver.tolerance=9"},
			`solver.tolerance 9, solver.relative_tolerance 0: the run would have ended (converged) after `},
		{[]string{"--resume", filepath.Join(work, "none")}, "there is no checkpoint"},
		{[]string{"--restart"}, "--restart: checkpoint.dir or checkpoint.nats has to say where the checkpoints are"},
		{[]string{"--restart", "--resume", dir}, "--restart and --resume: only one of them is allowed"},
		{set("checkpoint.every=100", "checkpoint.dir="+file), `checkpoint.dir "` + file + `": cannot be created: `},
		{set("checkpoint.every=100", "checkpoint.dir="+dir, "grid.nx=131"),
			`the checkpoint sets grid.nx to "130", this run to "131"`},
		{set("checkpoint.every=100", "checkpoint.dir=/proc/1"), `checkpoint.dir "/proc/1": cannot be written: `},
		{set("checkpoint.every=5", "checkpoint.keep=1", "checkpoint.dir="+one),
			`checkpoint.dir "` + one + `": must be a directory of checkpoints; with manifest.json it is one ` +
				`checkpoint, which only checkpoint.resume takes`},
	} {
		out := run(t, work, "launcher", append(onRanks(2, short...), c.args...)...)
		if out.fails(t, 1, c.want); strings.Contains(out.stderr, "[0]") {
			t.Errorf("%v: a rank has started\n%s", c.args, out.stderr)
		}
		run(t, work, "launcher", append(append(onRanks(2, short...), c.args...), "--dry-run")...).fails(t, 1, c.want)
		if !strings.HasPrefix(c.want, "--") {
			keys := slices.Clone(c.args)
			if keys[0] == "--resume" {
				keys = append(set("checkpoint.resume="+keys[1]), keys[2:]...)
			}
			run(t, work, "jacobi-rank", append(set(short...), keys...)...).fails(t, 1, c.want)
		}
	}
	if left := checkpoints(t, dir); !slices.Equal(left, []string{one}) {
		t.Errorf("checkpoints %v, want %v", left, one)
	}
}

// GPUs resume from a checkpoint of the CPU, and the CPU from one of GPUs, with peer memory and over NATS.
func TestResumeGivesTheSameBitsOnGPUs(t *testing.T) {
	needGPU(t)
	want, _ := solve(t, onRanks(1, long...)...)
	onCPU, onGPU := filepath.Join(t.TempDir(), "cpu"), filepath.Join(t.TempDir(), "gpu")
	saved(t, onCPU, "8")
	same(t, saved(t, onGPU, "4", "device.backend=cuda"), want, "GPUs with checkpoints")
	resumes(t, want, onCPU, map[string][]string{"3": {"device.backend=cuda", "halo.transport=p2p"},
		"1": {"device.backend=cuda"}})
	resumes(t, want, onGPU, map[string][]string{"2": {"device.backend=cuda", "halo.transport=nats"}, "3": nil})
}

// fileProblem returns the arguments of a problem whose source is f.npy in the working directory, with more keys.
func fileProblem(keys ...string) []string {
	return set(append(cycling("grid.nx=60", "grid.ny=40", "problem.source=f.npy", "solver.relative_tolerance=0",
		"solver.max_iterations=4"), keys...)...)
}

// writeSource writes f.npy of fileProblem to dir. With other set, one value in the middle of a row is another one.
func writeSource(t *testing.T, dir string, other bool) {
	t.Helper()
	const nx, ny, head = 60, 40, 128
	text := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", ny, nx)
	data := append([]byte("\x93NUMPY\x01\x00\x76\x00"), fmt.Sprintf("%-117s\n", text)...)
	data = append(data, make([]byte, 8*nx*ny)...)
	if other {
		data[head+8*(17*nx+30)] = 1
	}
	if err := os.WriteFile(filepath.Join(dir, "f.npy"), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// A run does not go on from a checkpoint with a file that has changed since, in one bit of one value.
func TestResumeWithAnotherFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSource(t, dir, false)
	mustRun(t, dir, "launcher", append(fileProblem("checkpoint.every=2", "checkpoint.dir=saved"), "-np", "2")...)
	going := append(fileProblem("solver.max_iterations=6"), "--resume", "saved")
	mustRun(t, dir, "launcher", going...)
	writeSource(t, dir, true)
	const want = `problem.source "f.npy": the file has changed since the checkpoint was written`
	run(t, dir, "launcher", going...).fails(t, 1, want)
	run(t, dir, "jacobi-rank", fileProblem("checkpoint.resume=saved", "run.ranks=1")...).fails(t, 1, want)
}

// The source of the kernels, compiled for the CPU, gives the bits of the CPU's own code.
func TestMultigridOnEmulatedGPUs(t *testing.T) {
	t.Parallel()
	env := libraryPath(emulatetest.Build(t))
	keys := cycling("grid.nx=230", "grid.ny=151", "problem.preset=dirichlet", "problem.left=neumann(1)",
		"problem.source=sin(7*x)*y", "problem.fixed=abs(ix-114.5)<23 && abs(iy-60)<3", "grid.height=0.7",
		"solver.tolerance=0", "solver.max_iterations=2")
	want, _ := solve(t, append(set(append(keys, "device.backend=cpu")...), "-np", "1")...)
	for _, r := range sameOnGPUs(t, env, keys, want, []string{"1", "3"}) {
		wantTransports(t, r, func(int, int) string { return "peer memory" })
	}
	t.Run("trace", func(t *testing.T) { traceOfEmulatedMultigrid(t, env) })
}
