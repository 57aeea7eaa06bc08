package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The periodic problem in float32 ends in two alternating states above the tolerance. The run ends at the same sweep
// with the same field for any number of ranks, depth and transport, even if it resumes from a checkpoint among the
// norms that decide.
func TestStalledRunEnds(t *testing.T) {
	t.Parallel()
	problem := []string{"grid.nx=33", "grid.ny=40", "output.picture=", "solver.max_iterations=1000000"}
	want, r := solve(t, append(set(append(problem, "device.kernel=portable", "halo.depth=1")...), "-np", "1")...)
	d := r.Decisive
	if want.reason != "stalled" || want.sweeps != 1641 || d == nil || d.Sweep != 1639 || d.Norm <= 1e-8 {
		t.Fatalf("%s after %d sweeps, by %+v; want stalled after 1641, by 1639", want.reason, want.sweeps, d)
	}
	for _, args := range [][]string{
		append(set("halo.depth=7"), "-np", "3"), append(set("halo.depth=5", "halo.transport=nats"), "-np", "2"),
	} {
		if got, _ := solve(t, append(set(problem...), args...)...); got != want {
			t.Errorf("%v: %s after %d sweeps, field %s; want %d, %s",
				args, got.reason, got.sweeps, got.sha, want.sweeps, want.sha)
		}
	}

	dir := t.TempDir()
	args := append(set(append(problem, "checkpoint.every=1600 sweeps", "checkpoint.dir=states")...), "-np", "2")
	if out := run(t, dir, "launcher", append(args, set("solver.max_iterations=1610")...)...); out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	out := run(t, dir, "launcher", append(args, "--restart", "-np", "3")...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	r = readReport(t, filepath.Join(dir, "out"))
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got := (answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}); got != want || r.ResumedAfter <= 1540 {
		t.Errorf("restarted after %d: %s after %d sweeps, field %s; want %d, %s",
			r.ResumedAfter, got.reason, got.sweeps, got.sha, want.sweeps, want.sha)
	}
	const words = "stalled: by sweep 1639 only rounding (float32) moved the field, back and forth"
	if !strings.Contains(out.stdout, words) {
		t.Errorf("summary\n%s\nwants %s", out.stdout, words)
	}
}
