package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// problemsOfAllKinds have sources, spacings, screening, fixed points and every kind of wall between them.
var problemsOfAllKinds = map[string][]string{
	"between Neumann walls": {"problem.preset=dirichlet", "problem.top=neumann(1)", "problem.bottom=neumann(-x)",
		"problem.left=neumann(0)", "problem.right=0", "problem.source=sin(9*x)*y", "grid.height=2",
		"problem.fixed=hypot(x-0.4, y-0.5) < 0.2", "problem.initial=x"},
	"between periodic sides": {"problem.preset=gtc2019", "problem.left=periodic", "problem.right=periodic",
		"problem.screening=40", "problem.source=ix%7-iy%5", "grid.dtype=float64", "problem.initial=y"},
	"around islands": {"problem.preset=dirichlet", "problem.left=periodic", "problem.right=periodic",
		"problem.bottom=neumann(0)", "problem.fixed=(ix + 3*iy) % 11 == 0", "problem.initial=sin(5*x)"},
	"between values": {"problem.preset=dirichlet", "problem.source=1", "problem.left=y", "problem.fixed=ix > iy"},
	"on a ring":      {"problem.preset=gtc2019", "problem.right=neumann(1)", "grid.width=3", "grid.height=1"},
}

// Every operator and wall gives the same bits for any ranks, depth, transport and kernel, and so do its results.
func TestEveryOperatorGivesTheSameBits(t *testing.T) {
	t.Parallel()
	for name, problem := range problemsOfAllKinds {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"grid.nx=131", "grid.ny=139", "solver.tolerance=0", "solver.max_iterations=211",
				"output.picture="}, problem...)
			want, first := solve(t, append(set(append(args, "halo.depth=1", "device.kernel=portable")...), "-np",
				"1")...)
			for _, c := range []struct{ np, settings string }{
				{"1", "halo.depth=16"}, {"3", "halo.depth=7 halo.transport=p2p"}, {"5", "halo.transport=nats"},
				{"8", "halo.depth=auto device.threads=2"},
			} {
				got, rep := solve(t, append(set(append(args, strings.Fields(c.settings)...)...), "-np", c.np)...)
				if got != want {
					t.Errorf("np %s %s: field %s, want %s; histories equal: %v", c.np, c.settings, got.sha, want.sha,
						got.history == want.history)
				}
				if a, b := resultText(t, rep), resultText(t, first); a != b {
					t.Errorf("np %s %s: results %s, want %s", c.np, c.settings, a, b)
				}
			}
		})
	}
}

// A run of every operator goes on from a checkpoint with other ranks and ends with the same bits.
func TestEveryOperatorResumes(t *testing.T) {
	t.Parallel()
	for name, problem := range problemsOfAllKinds {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "checkpoints")
			args := append([]string{"grid.nx=70", "grid.ny=75", "solver.tolerance=0", "solver.max_iterations=200",
				"output.picture="}, problem...)
			want, _ := solve(t, append(set(args...), "-np", "1")...)
			half := append(args[:len(args):len(args)], "solver.max_iterations=120", "checkpoint.every=50",
				"checkpoint.dir="+dir)
			solve(t, append(set(half...), "-np", "3")...)
			got, rep := solve(t, append(set(args...), "-np", "2", "--resume", dir)...)
			if got != want || rep.ResumedAfter != 120 {
				t.Errorf("after %d sweeps: field %s, want %s; histories equal: %v", rep.ResumedAfter, got.sha, want.sha,
					got.history == want.history)
			}
			other := append(args[:len(args):len(args)], "grid.width=5")
			out := run(t, t.TempDir(), "launcher", append(set(other...), "-np", "2", "--resume", dir)...)
			if out.code == 0 || !strings.Contains(out.stderr, "grid.width") {
				t.Errorf("another width: exit code %d\n%s", out.code, out.stderr)
			}
		})
	}
}

// resultText returns the results of a report as text.
func resultText(t *testing.T, r report) string {
	t.Helper()
	if r.Results == nil {
		t.Fatal("the report has no results")
	}
	var lines []string
	for _, line := range r.Results.Lines() {
		lines = append(lines, line[1])
	}
	return strings.Join(lines, "; ")
}
