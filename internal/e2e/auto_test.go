package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// open leaves the method open, which the tests otherwise fix.
func open(more ...string) []string {
	return append([]string{"solver.method=auto", "grid.nx=130", "grid.ny=130", "grid.dtype=float64",
		"problem.preset=dirichlet", "output.picture=", "output.field="}, more...)
}

// methodOf returns the method that a report names, with the reason of auto.
func methodOf(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Method string `json:"method"`
		Reason string `json:"method_reason"`
		Config struct{ Solver struct{ Method string } }
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if r.Config.Solver.Method != r.Method {
		t.Errorf("the configuration of the report has method %q, the report %q", r.Config.Solver.Method, r.Method)
	}
	return r.Method + ": " + r.Reason
}

// Auto solves by multigrid, with the bits of a run that names it. Everything that describes the run says so.
func TestAuto(t *testing.T) {
	const label, reason = ", multigrid (auto: ", "the tolerance takes more than 1000 sweeps"
	want, _ := solve(t, append(set(open("solver.method=multigrid")...), "-np", "1")...)
	dir := t.TempDir()
	args := append(set(open()...), "-np", "3")
	out := run(t, dir, "launcher", args...)
	r := readReport(t, filepath.Join(dir, "out"))
	if out.code != 0 || r.FieldSHA256 != want.sha || r.Sweeps != want.sweeps || r.StopReason != "converged" {
		t.Errorf("exit code %d, field %s after %d (%s); want %s after %d\n%s", out.code, r.FieldSHA256, r.Sweeps,
			r.StopReason, want.sha, want.sweeps, out.stderr)
	}
	if got := methodOf(t, filepath.Join(dir, "out")); got != "multigrid: "+reason {
		t.Errorf("the report says %q", got)
	}
	if !strings.Contains(out.stderr, label+reason+")\n") {
		t.Errorf("the launcher does not name the method:\n%s", out.stderr)
	}
	for _, more := range []string{"--dry-run", "doctor"} {
		words := append([]string{more}, args...)
		if more == "--dry-run" {
			words = append(args[:len(args):len(args)], more)
		}
		out := run(t, t.TempDir(), "launcher", words...)
		if text := strings.Join(strings.Fields(out.stdout), " "); out.code != 0 ||
			!strings.Contains(text, label+reason+")") {
			t.Errorf("%s: exit code %d:\n%s%s", more, out.code, out.stdout, out.stderr)
		}
	}
}

// A run that leaves the method open goes on by the method of its checkpoint, whatever auto would take.
func TestAutoGoesOn(t *testing.T) {
	for _, c := range []struct{ method, keys string }{
		{"jacobi", "problem.screening=0"},
		{"multigrid", "problem.preset=gtc2019"},
		{"chebyshev", "problem.screening=0"},
	} {
		t.Run(c.method, func(t *testing.T) {
			t.Parallel()
			saved := filepath.Join(t.TempDir(), "checkpoints")
			first := open(c.keys, "solver.method="+c.method, "solver.tolerance=0", "checkpoint.dir="+saved,
				"checkpoint.every=1h", "solver.max_iterations=200")
			if c.method == "multigrid" {
				first = append(first, "solver.max_iterations=2")
			}
			solve(t, append(set(first...), "-np", "2")...)
			for program, args := range map[string][]string{
				"launcher":    append(set(open(c.keys, "solver.tolerance=0.01")...), "-np", "3", "--resume", saved),
				"jacobi-rank": set(open(c.keys, "solver.tolerance=0.01", "run.ranks=1", "checkpoint.resume="+saved)...),
			} {
				dir := t.TempDir()
				out := run(t, dir, program, args...)
				if out.code != 0 {
					t.Fatalf("%s: exit code %d\n%s", program, out.code, out.stderr)
				}
				if got := methodOf(t, filepath.Join(dir, "out")); got != c.method+": that of the checkpoint" {
					t.Errorf("%s went on by %q", program, got)
				}
				if text := c.method + " (auto: that of the checkpoint)"; !strings.Contains(out.stderr, text) {
					t.Errorf("%s does not say %q:\n%s", program, text, out.stderr)
				}
			}
		})
	}
}
