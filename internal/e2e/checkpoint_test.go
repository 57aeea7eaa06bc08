package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// A run that is resumed with another number of ranks, transport, depth and kernel has the answer of a run that never
// stopped.
func TestResumeGivesTheSameBits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	want, _ := solve(t, append(set(long...), "-np", "1")...)
	if got := saved(t, dir, "8", "halo.transport=p2p"); got != want {
		t.Errorf("with checkpoints: field %s, want %s", got.sha, want.sha)
	}
	for _, c := range []struct {
		np       string
		settings []string
	}{
		{"3", []string{"halo.transport=nats", "halo.depth=2"}},
		{"5", []string{"halo.transport=p2p", "device.kernel=portable", "halo.depth=1"}},
		{"1", nil},
	} {
		got, r := solve(t, append(set(append(c.settings, long...)...), "-np", c.np, "--resume", dir)...)
		if got != want || r.ResumedAfter < 500 {
			t.Errorf("np %s %v, resumed after %d sweeps: %d sweeps, field %s; want %d, %s; histories equal: %v",
				c.np, c.settings, r.ResumedAfter, got.sweeps, got.sha, want.sweeps, want.sha,
				got.history == want.history)
		}
	}
	// A single rank can resume, too, and max_iterations may be larger.
	more := append(long[:len(long):len(long)], "solver.max_iterations=6100")
	want, _ = solve(t, append(set(more...), "-np", "2")...)
	out := t.TempDir()
	if o := run(t, out, "jacobi-rank", set(append(more, "checkpoint.resume="+dir)...)...); o.code != 0 {
		t.Fatalf("exit code %d\n%s", o.code, o.stderr)
	}
	if r := readReport(t, filepath.Join(out, "out")); r.FieldSHA256 != want.sha || r.Sweeps != 6100 {
		t.Errorf("alone: %d sweeps, field %s; want %s", r.Sweeps, r.FieldSHA256, want.sha)
	}
}

// A damaged part is named, and the run resumes from the checkpoint before it.
func TestResumePassesOverABrokenPart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	want := saved(t, dir, "4")
	sets := checkpoints(t, dir)
	if len(sets) != 2 {
		t.Fatalf("%d checkpoints, want 2", len(sets))
	}
	part := filepath.Join(sets[1], "part-00002")
	b, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	b[5000] ^= 1
	if err := os.WriteFile(part, b, 0o666); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	out := run(t, work, "launcher", append(set(append(long, "checkpoint.dir="+dir)...), "-np", "3", "--restart")...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	r := readReport(t, filepath.Join(work, "out"))
	if r.FieldSHA256 != want.sha || !strings.Contains(filepath.Base(sets[0]), fmt.Sprintf("%012d", r.ResumedAfter)) {
		t.Errorf("resumed after %d sweeps, field %s; want that of %s, %s", r.ResumedAfter, r.FieldSHA256, sets[0],
			want.sha)
	}
	if p := "a checkpoint cannot be used: " + filepath.Base(sets[1]) +
		": rank . on .*: part-00002 is broken: checksum "; !regexp.MustCompile(p).MatchString(out.stderr) {
		t.Errorf("%s\nwant %s", out.stderr, p)
	}
}

// SIGINT and the time limit leave a checkpoint of the last sweep, from which the run resumes.
func TestInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := begin(t, dir, append(set("checkpoint.every=1h", "checkpoint.dir=checkpoints"), "-np", "3")...)
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 130 {
		t.Fatalf("exit code %d, want 130\n%s", code, output)
	}
	l.leavesNothing()
	first := readReport(t, filepath.Join(dir, "out"))
	sweeps := fmt.Sprintf("solver.max_iterations=%d", first.Sweeps+200)
	problem := set(append(slices.Clone(endless), sweeps)...)
	got, r := solve(t, append(problem, "-np", "2", "--resume", filepath.Join(dir, "checkpoints"))...)
	if r.ResumedAfter != first.Sweeps {
		t.Errorf("resumed after %d sweeps, want %d", r.ResumedAfter, first.Sweeps)
	}
	if want, _ := solve(t, append(problem, "-np", "1")...); got != want {
		t.Errorf("field %s, want %s; histories equal: %v", got.sha, want.sha, got.history == want.history)
	}
}

// A run that ends at max_iterations leaves a checkpoint, from which --restart continues with a larger max_iterations.
func TestMaxIterationsLeavesACheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mesh := []string{"grid.nx=130", "grid.ny=150"}
	problem := append(set(append(mesh, "checkpoint.every=1h", "checkpoint.dir=checkpoints")...), "-np", "3")
	first := run(t, dir, "launcher", append(problem, "--set", "solver.max_iterations=100")...)
	if first.code != 0 || !strings.Contains(first.stdout, "1 in checkpoints, the last after 100 sweeps") {
		t.Fatalf("exit code %d\n%s%s\nwant a checkpoint after 100 sweeps", first.code, first.stdout, first.stderr)
	}
	for _, sweeps := range []string{"100", "250"} {
		iterations := "solver.max_iterations=" + sweeps
		if out := run(t, dir, "launcher", append(problem, "--set", iterations, "--restart")...); out.code != 0 {
			t.Fatalf("exit code %d\n%s", out.code, out.stderr)
		}
		history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
		if err != nil {
			t.Fatal(err)
		}
		r := readReport(t, filepath.Join(dir, "out"))
		got := answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}
		want, _ := solve(t, append(set(append(mesh, iterations)...), "-np", "1")...)
		if got != want || r.ResumedAfter != 100 {
			t.Errorf("%s sweeps, resumed after %d: field %s, want %s; histories equal: %v",
				sweeps, r.ResumedAfter, got.sha, want.sha, got.history == want.history)
		}
	}
}

// A checkpoint from which the run cannot resume, and a place that cannot be written, are refused before a rank starts.
func TestCheckpointRefusals(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	dir := filepath.Join(work, "checkpoints")
	saved(t, dir, "2")
	file := filepath.Join(work, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--resume", dir, "--set", "problem.left=0"},
			`checkpoint.resume "` + dir + `": the checkpoint sets problem.left to "sin(2 * float32(pi) * iy / ` +
				`(ny - 1))", this run to "0"`},
		{[]string{"--resume", dir, "--set", "grid.dtype=float64"},
			`the checkpoint sets grid.dtype to "float32", this run to "float64"`},
		{[]string{"--resume", dir, "--set", "solver.max_iterations=10"},
			`solver.max_iterations 10: the checkpoint already has `},
		{[]string{"--resume", dir, "--set", "solver.tolerance=0.3"},
			`solver.tolerance 0.3, solver.relative_tolerance 0: the run would have ended (converged) after `},
		{[]string{"--resume", filepath.Join(work, "none")}, "there is no checkpoint"},
		{[]string{"--restart"}, "--restart: checkpoint.dir or checkpoint.nats has to say where the checkpoints are"},
		{[]string{"--restart", "--resume", dir}, "--restart and --resume: only one of them is allowed"},
		{set("checkpoint.every=100"), "checkpoint.dir or checkpoint.nats has to say where"},
		{set("checkpoint.every=100", "checkpoint.dir="+file), `checkpoint.dir "` + file + `": cannot be created: `},
		{set("checkpoint.every=100", "checkpoint.dir="+dir, "grid.nx=131"),
			`the checkpoint sets grid.nx to "130", this run to "131"`},
		{set("checkpoint.every=100", "checkpoint.dir=/proc/1"), `checkpoint.dir "/proc/1": cannot be written: `},
	} {
		out := run(t, work, "launcher", append(append(set(long...), "-np", "2"), c.args...)...)
		if out.code != 1 || !strings.Contains(out.stderr, c.want) || strings.Contains(out.stderr, "sweeps") &&
			strings.Contains(out.stderr, "[0]") {
			t.Errorf("%v: exit code %d\n%s\nwant %s", c.args, out.code, out.stderr, c.want)
		}
	}
}

// GPUs resume from a checkpoint of the CPU, and the CPU from one of GPUs, with peer memory and over NATS.
func TestResumeGivesTheSameBitsOnGPUs(t *testing.T) {
	needGPU(t)
	want, _ := solve(t, append(set(long...), "-np", "1")...)
	onCPU, onGPU := filepath.Join(t.TempDir(), "cpu"), filepath.Join(t.TempDir(), "gpu")
	saved(t, onCPU, "8")
	if got := saved(t, onGPU, "4", "device.backend=cuda"); got != want {
		t.Errorf("GPUs with checkpoints: field %s, want %s; histories equal: %v", got.sha, want.sha,
			got.history == want.history)
	}
	for _, c := range []struct {
		dir, np  string
		settings []string
	}{
		{onCPU, "3", []string{"device.backend=cuda", "halo.transport=p2p"}},
		{onCPU, "1", []string{"device.backend=cuda"}},
		{onGPU, "2", []string{"device.backend=cuda", "halo.transport=nats"}},
		{onGPU, "3", nil},
	} {
		got, r := solve(t, append(set(append(c.settings, long...)...), "-np", c.np, "--resume", c.dir)...)
		if got != want || r.ResumedAfter < 500 {
			t.Errorf("%s, np %s %v, resumed after %d sweeps: field %s, want %s; histories equal: %v",
				filepath.Base(c.dir), c.np, c.settings, r.ResumedAfter, got.sha, want.sha, got.history == want.history)
		}
	}
}
