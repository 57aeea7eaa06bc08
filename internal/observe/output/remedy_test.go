package output

import (
	"strconv"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// The summary of a run that missed its tolerance ends with what to change in such a case.
func TestRemedy(t *testing.T) {
	norm := 0.0123
	for _, c := range []struct {
		name          string
		method, dtype string
		reason        solver.StopReason
		accuracy      *AccuracyReport
		want          string
	}{
		{"sweeps", configs.Jacobi, "float64", solver.MaxIterations, nil, "The tolerance was not met: raise " +
			"solver.max_iterations above 50; set solver.method=multigrid, which takes a few cycles; or set " +
			"solver.tolerance=0.013, which this run met."},
		{"sweeps in float32", configs.Jacobi, "float32", solver.MaxIterations, nil, "The tolerance was not met: " +
			"raise solver.max_iterations above 50; set grid.dtype=float64 and solver.method=multigrid, which takes " +
			"a few cycles; or set solver.tolerance=0.013, which this run met."},
		{"sweeps in float32 that cannot meet it", configs.Jacobi, "float32", solver.MaxIterations,
			&AccuracyReport{Rounding: true}, "The tolerance was not met: set grid.dtype=float64 and solver.method=" +
				"multigrid, which takes a few cycles; or set solver.tolerance=0.013, which this run met."},
		{"rounding in float32", configs.Jacobi, "float32", solver.Stalled, nil, "The tolerance was not met: set " +
			"grid.dtype=float64; or set solver.tolerance=0.013, which this run met."},
		{"cycles", configs.Multigrid, "float64", solver.MaxIterations, nil, "The tolerance was not met: raise " +
			"solver.max_iterations above 50; or set solver.tolerance=0.013, which this run met."},
		{"sweeps in float64 that cannot meet it", configs.Jacobi, "float64", solver.MaxIterations,
			&AccuracyReport{Rounding: true},
			"The tolerance was not met: set solver.tolerance=0.013, which this run met."},
		{"rounding in float64", configs.Multigrid, "float64", solver.Stalled, nil, "The tolerance was not met: set " +
			"solver.tolerance=0.013, which this run met."},
		{"plain cycles", configs.Multigrid, "float64", solver.Stagnated, nil, "The tolerance was not met: try " +
			"solver.acceleration=cg; or set solver.tolerance=0.013, which this run met."},
		{"cycles with conjugate gradients", configs.Multigrid + ", cg", "float64", solver.Stagnated, nil,
			"The tolerance was not met: set solver.tolerance=0.013, which this run met."},
	} {
		method, acceleration, _ := strings.Cut(c.method, ", ")
		r := Report{Verdict: configs.Missed, Method: method, StopReason: c.reason, MaxIterations: 50, Norm: &norm,
			Tolerance: 1e-3, Accuracy: c.accuracy, Accelerated: acceleration == "cg"}
		r.Mesh.DType = c.dtype
		if got := r.Remedy(); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		r.Norm = new(0.0)
		const want = "The tolerance was not met: set a larger one, as norms below it count as 0 beside " +
			"values of this size."
		if got := r.Remedy(); got != want {
			t.Errorf("%s, a norm of 0: %s", c.name, got)
		}
		r.Verdict = configs.Done
		if got := r.Remedy(); got != "" {
			t.Errorf("%s, with sweeps that were asked for: %s", c.name, got)
		}
	}
}

// A tolerance that is rounded for a message is not below the norm.
func TestRoundUp(t *testing.T) {
	for norm, want := range map[float64]string{0.0123: "0.013", 0.012: "0.012", 9.96e-9: "1e-08", 2.04e-300: "2.1e-300",
		1234.5: "1300", 9.9e-5: "9.9e-05"} {
		got := roundUp(norm)
		back, err := strconv.ParseFloat(got, 64)
		if got != want || err != nil || back < norm {
			t.Errorf("%g: %s, want %s", norm, got, want)
		}
	}
}
