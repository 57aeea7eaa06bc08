package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// open are keys that leave the method open, which the tests otherwise fix.
func open(more ...string) []string {
	return append([]string{"solver.method=auto", "grid.nx=130", "grid.ny=130", "grid.dtype=float64",
		"problem.preset=dirichlet", "output.picture=", "output.field="}, more...)
}

// A file that says nothing but its problem is solved, with the same field for any number of ranks and with keys that
// change no field.
func TestNaturalFile(t *testing.T) {
	const file = "grid: {nx: 65, ny: 65}\nproblem: {left: 0, right: 0, top: 0, bottom: 0, source: 1}\n"
	solved := func(args ...string) (report, outcome) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "run.yaml"), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		out := runNatural(t, dir, "launcher", append([]string{"--config", "run.yaml"}, args...)...)
		if out.code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, out.code, out.stderr)
		}
		return readReport(t, filepath.Join(dir, "out")), out
	}
	want, out := solved("-np", "1")
	const first = "Poisson equation, 65 x 65 float64, multigrid (auto: any problem but gtc2019)\n"
	if !strings.Contains(out.stderr, first) || want.StopReason != "converged" || want.Results == nil ||
		math.Abs(want.Results.Max.Value-0.0737) > 1e-4 {
		t.Errorf("%s, %+v, want %q and a maximum of 0.0737 in\n%s", want.StopReason, want.Results, first, out.stderr)
	}
	for _, args := range [][]string{
		{"-np", "3"}, set("problem.preset=", "solver.max_iterations=50"), set("output.every=2"), set("grid.height=1"),
		set("checkpoint.every=2", "checkpoint.dir=saved"), set("grid.dtype=float32"),
		set("solver.relative_tolerance=1e-8"),
	} {
		got, _ := solved(append(args, "-np", "2")...)
		if got.FieldSHA256 != want.FieldSHA256 || got.Sweeps != want.Sweeps || got.StopReason != want.StopReason {
			t.Errorf("%q: %s after %d (%s), want %s after %d (%s)", args, got.FieldSHA256, got.Sweeps, got.StopReason,
				want.FieldSHA256, want.Sweeps, want.StopReason)
		}
	}
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
	const label, reason = ", multigrid (auto: ", "any problem but gtc2019"
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

// A run that leaves method and type open goes on by those of its checkpoint, also with a key that its own method lacks.
func TestOpenTypeGoesOn(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "checkpoints")
	keys := set("grid.nx=66", "grid.ny=66", "problem.left=1", "output.picture=", "solver.tolerance=0")
	run(t, t.TempDir(), "launcher", append(keys, set("problem.preset=", "solver.method=jacobi", "grid.dtype=float32",
		"checkpoint.dir="+saved, "checkpoint.every=1h", "solver.max_iterations=20")...)...)
	for program, args := range map[string][]string{
		"launcher":    append(keys, "-np", "2", "--resume", saved, "--set", "halo.depth=4"),
		"jacobi-rank": append(keys, set("run.ranks=1", "checkpoint.resume="+saved, "halo.depth=4")...),
	} {
		dir := t.TempDir()
		out := runNatural(t, dir, program, args...)
		if out.code != 0 {
			t.Fatalf("%s: exit code %d\n%s", program, out.code, out.stderr)
		}
		if r := readReport(t, filepath.Join(dir, "out")); r.ResumedAfter != 20 || r.Sweeps != 1000 || r.Depth != 4 {
			t.Errorf("%s: %d sweeps after %d with depth %d, want 1000 after 20 with 4", program, r.Sweeps,
				r.ResumedAfter, r.Depth)
		}
		if !strings.Contains(out.stdout, "66 x 66, float32") {
			t.Errorf("%s: no field of float32 in\n%s", program, out.stdout)
		}
	}
}

// A run that leaves the method open goes on by the method of its checkpoint, whatever auto would take.
func TestAutoGoesOn(t *testing.T) {
	for _, c := range []struct{ method, keys string }{
		{"jacobi", "problem.screening=0"},
		{"multigrid", "problem.preset=gtc2019"},
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
				if out.code != 0 && out.code != exits["missed"] {
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
