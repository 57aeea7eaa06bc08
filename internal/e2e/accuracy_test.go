package e2e

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// solution returns the solution of the discrete equations on n x n points with top 1 and the other sides 0. It is a sum
// of sines in x, each times a hyperbolic sine in y.
func solution(n int) [][]float64 {
	h := math.Pi / float64(n-1)
	field := make([][]float64, n)
	for iy := range field {
		field[iy] = make([]float64, n)
	}
	for p := 1; p < n-1; p++ {
		part := 0.0 // coefficient of sin(p pi x) in the top side
		for ix := 1; ix < n-1; ix++ {
			part += 2 / float64(n-1) * math.Sin(float64(p*ix)*h)
		}
		rate := math.Acosh(2 - math.Cos(float64(p)*h))
		for iy := range n {
			decay := math.Sinh(rate*float64(n-1-iy)) / math.Sinh(rate*float64(n-1))
			for ix := 1; ix < n-1; ix++ {
				field[iy][ix] += part * decay * math.Sin(float64(p*ix)*h)
			}
		}
	}
	return field
}

// The error that the report estimates is within a factor of three of the error of the field: when a tolerance ended the
// run, when float32 stalled, when the norm met a tolerance below the resolution of float32, and far from the solution.
func TestReportedError(t *testing.T) {
	t.Parallel()
	const n = 65
	exact := solution(n)
	for _, c := range []struct {
		name, result string
		args         []string
	}{
		{"float64", "converged: the norm of sweep ", []string{"grid.dtype=float64", "solver.tolerance=1e-6"}},
		{"float32", "converged: the norm of sweep ", []string{"solver.tolerance=1e-5"}},
		{"below float32", "; rounding in float32 alone leaves such a norm",
			[]string{"solver.tolerance=1e-7"}},
		{"norm of 0", "set a larger one, as norms below it count as 0", []string{"solver.tolerance=1e-20"}},
		{"unfinished", "not converged: stopped at max_iterations", []string{"solver.max_iterations=2000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"problem.preset=dirichlet", "grid.nx=65", "grid.ny=65", "solver.max_iterations=100000"}
			out := run(t, dir, "launcher", append(set(append(args, c.args...)...), "-np", "2")...)
			met := strings.Contains(out.stdout, "Result         converged")
			if (out.code == 0) != met || !strings.Contains(out.stdout, c.result) {
				t.Errorf("exit code %d, want %q in\n%s%s", out.code, c.result, out.stdout, out.stderr)
			}
			worst, field := 0.0, readField(t, filepath.Join(dir, "out", "field.npy"), n, n)
			for iy := 1; iy < n-1; iy++ {
				for ix := 1; ix < n-1; ix++ {
					worst = max(worst, math.Abs(field[iy*n+ix]-exact[iy][ix]))
				}
			}
			if got := readReport(t, filepath.Join(dir, "out")).Accuracy.Error; got < worst/3 || got > 3*worst {
				t.Errorf("the report says %.3g, the field has %.3g", got, worst)
			}
		})
	}
}
