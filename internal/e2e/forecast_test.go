package e2e

import (
	"regexp"
	"strconv"
	"testing"
)

// A run that converges long before max_iterations predicts its end correctly from its first line on, even if it resumes
// from a checkpoint.
func TestForecast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := append(set("grid.nx=64", "grid.ny=64", "grid.dtype=float64", "solver.max_iterations=100000000",
		"output.picture=", "checkpoint.dir=states", "checkpoint.every=1000 sweeps"), "-np", "2")
	first := run(t, dir, "launcher", append(args, set("solver.max_iterations=3000")...)...)
	second := run(t, dir, "launcher", append(args, "--restart")...)
	for _, c := range []struct {
		out   outcome
		lines []string
	}{
		{first, []string{
			`launcher: expected: the end is at the 3,000 sweeps of solver.max_iterations; ` +
				`the tolerance takes about 4,617\n`,
			`launcher: \d+ of 3000 sweeps \(\d+%\), norm `, `launcher: 3000 of 3000 sweeps \(100%\), norm `,
		}},
		{second, []string{
			`launcher: expected: the tolerance is met after about 4,617 sweeps\n`,
			`launcher: 3\d+ of about 46\d0 sweeps \(\d+%\), norm `, `launcher: 4617 of 4617 sweeps \(100%\), norm `,
		}},
	} {
		for _, line := range c.lines {
			if c.out.code != 0 || !regexp.MustCompile(line).MatchString(c.out.stderr) {
				t.Errorf("exit code %d, want %s in\n%s", c.out.code, strconv.Quote(line), c.out.stderr)
			}
		}
		if regexp.MustCompile(`at most|at least`).MatchString(c.out.stderr) {
			t.Errorf("a promise in\n%s", c.out.stderr)
		}
	}
}
