package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/observe/events"
)

// above is a problem whose 20 sweeps do not meet the tolerance.
var above = set("problem.preset=dirichlet", "grid.nx=64", "grid.ny=64", "grid.dtype=float64", "solver.tolerance=1e-6",
	"solver.max_iterations=20", "output.picture=")

// remedy is the end of its summary.
const remedy = "\n\n  The tolerance was not met: raise solver.max_iterations above 20; set " +
	"solver.method=multigrid, which takes a few cycles; or set solver.tolerance=0.18, which this run met.\n"

// wantAbove checks the end of a run of above: all files, exit code 4, a remedy at last, and no rank to blame.
func wantAbove(t *testing.T, dir string, out outcome) {
	t.Helper()
	if out.code != 4 || !strings.HasSuffix(out.stdout, remedy) {
		t.Errorf("exit code %d, want 4, and %q at the end of\n%s%s", out.code, remedy, out.stdout, out.stderr)
	}
	if r := readReport(t, filepath.Join(dir, "out")); r.Verdict != "missed" || r.Sweeps != 20 {
		t.Errorf("verdict %s after %d sweeps", r.Verdict, r.Sweeps)
	}
	for _, word := range []string{"failed", "restart", "rank 0"} {
		if strings.Contains(out.stderr, word) {
			t.Errorf("%q on stderr:\n%s", word, out.stderr)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "out", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A tolerance that was not met has an exit code of its own, whoever starts the ranks. It is no failure.
func TestMissedTolerance(t *testing.T) {
	t.Parallel()
	t.Run("launcher", func(t *testing.T) {
		dir := t.TempDir()
		wantAbove(t, dir, run(t, dir, "launcher", append(above, "-np", "3", "--max-restarts", "2",
			"--set", "checkpoint.every=10", "--set", "checkpoint.dir=saved")...))
	})
	t.Run("one rank", func(t *testing.T) {
		dir := t.TempDir()
		wantAbove(t, dir, run(t, dir, "jacobi-rank", append(above, set("run.ranks=1")...)...))
	})
	t.Run("ranks of a scheduler", func(t *testing.T) {
		dir := t.TempDir()
		outs := byHand(t, dir, pmi(3), above...)
		for r, o := range outs {
			if o.code != 4 {
				t.Errorf("rank %d: exit code %d", r, o.code)
			}
		}
		wantAbove(t, dir, together(outs))
	})
	for program, args := range map[string][]string{
		"mpirun.openmpi": {"--allow-run-as-root", "--oversubscribe"}, "mpiexec.hydra": nil,
	} {
		t.Run(program, func(t *testing.T) {
			path, dir := installed(t, program), t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			out := finish(t, ctx, through(t, command(ctx, dir, "jacobi-rank", above...),
				append([]string{path, "-np", "4"}, args...)...))
			out.stderr = "" // mpirun has words of its own
			wantAbove(t, dir, out)
		})
	}
}

// The output of a dry run is a run file with the same verdict, and so is the floor of rounding without a tolerance.
func TestDryRunKeepsTheVerdict(t *testing.T) {
	t.Parallel()
	weak := set("problem.left=neumann(0)", "problem.right=neumann(0)", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.source=x*y", "problem.screening=1e-5", "grid.nx=65", "grid.ny=65")
	for _, c := range []struct {
		verdict, words string
		args           []string
	}{
		{"done", "not converged: stopped at max_iterations", set("grid.nx=64", "grid.ny=64",
			"solver.max_iterations=20")},
		{"met", "converged to the floor of rounding, which is above the default tolerance", weak},
	} {
		dir := t.TempDir()
		plan := runNatural(t, dir, "launcher", append(c.args, "-np", "1", "--dry-run")...)
		if err := os.WriteFile(filepath.Join(dir, "run.yaml"), []byte(plan.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{c.args, {"--config", "run.yaml"}} {
			out := runNatural(t, dir, "launcher", append(args, "-np", "1")...)
			if out.code != 0 {
				t.Fatalf("%q: exit code %d\n%s%s", args, out.code, out.stdout, out.stderr)
			}
			r := readReport(t, filepath.Join(dir, "out"))
			if r.Verdict != c.verdict || !strings.Contains(out.stdout, "  "+c.words+"\n") {
				t.Errorf("%q: %s, want %s and %q in\n%s", args, r.Verdict, c.verdict, c.words, out.stdout)
			}
		}
	}
}

// A run that was to do iterations does not miss a tolerance.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	stalls := set("problem.preset=dirichlet", "grid.nx=16", "grid.ny=16", "grid.dtype=float32",
		"solver.tolerance=1e-30", "solver.max_iterations=100000")
	for _, c := range []struct {
		verdict string
		args    []string
		code    int
	}{
		{"met", append(slices.Clone(above), set("solver.tolerance=0.5")...), 0},
		{"done", append(slices.Clone(above), set("solver.tolerance=0")...), 0},
		{"done", set("problem.preset=gtc2019", "grid.nx=64", "grid.ny=64", "solver.max_iterations=20"), 0},
		{"missed", set("problem.preset=gtc2019", "grid.nx=64", "grid.ny=64", "solver.max_iterations=20",
			"solver.tolerance=1e-5"), 4},
		{"missed", append(slices.Clone(stalls), set("problem.initial=x*(1-y)")...), 4},
	} {
		dir := t.TempDir()
		out := run(t, dir, "launcher", append(c.args, "--json", "-np", "2")...)
		all, _ := eventsOf(t, out.stdout)
		end := *all[len(all)-1].End
		if want := (events.End{ExitCode: c.code, Verdict: c.verdict}); out.code != c.code || end != want {
			t.Errorf("%q: exit code %d, end %+v, want %+v", c.args, out.code, end, want)
		}
		if r := readReport(t, filepath.Join(dir, "out")); r.Verdict != c.verdict {
			t.Errorf("%q: the report has %s after %s, want %s", c.args, r.Verdict, r.StopReason, c.verdict)
		}
	}
}
