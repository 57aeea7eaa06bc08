package outlook

import (
	"testing"

	"jacobi/configs"
	"jacobi/solver"
	"jacobi/solver/chebyshev"
)

// The forecast counts whole quarters of cycles from the newest norm, and ends a run where Plan.Last does.
func TestChebyshevForecast(t *testing.T) {
	p, err := chebyshev.NewPlan(solver.Mesh{NX: 257, NY: 257, DType: solver.Float64}, solver.Operator{})
	if err != nil {
		t.Fatal(err)
	}
	s := configs.Solver{Tolerance: 1e-3, RelativeTolerance: 1e-6, MaxIterations: 5000}
	c := NewChebyshev(s, p)
	if _, _, ok := c.End(); ok {
		t.Error("a forecast without norms")
	}
	for _, step := range []struct {
		sweep  int
		norm   float64
		end    int
		reason solver.StopReason
	}{
		{0, 2000, 1 + 5*257, solver.Converged}, // a quarter leaves 0.0514
		{257, 100, 258 + 4*257, solver.Converged},
		{514, 1e-3, 515, solver.Converged},
		{771, 1e20, 19*257 + 1, solver.MaxIterations},
	} {
		c.Add(step.sweep, step.norm)
		if end, reason, ok := c.End(); end != step.end || reason != step.reason || !ok {
			t.Errorf("after sweep %d: %d, %s, %v; want %d, %s", step.sweep, end, reason, ok, step.end, step.reason)
		}
	}
}

// The hint names the sweeps to the tolerance, or, with fixed points inside, what sweeps do for the norm, and the type
// and the limit that they need.
func TestChebyshevHint(t *testing.T) {
	plate := configs.Problem{Preset: "dirichlet", Fixed: "abs(x-0.5) < 0.1 && abs(y-0.5) < 0.1"}
	for _, c := range []struct {
		n         int
		dtype     string
		problem   configs.Problem
		tolerance float64
		max       int
		want      string
	}{
		{257, "float64", dirichlet, 1e-8, 1000,
			"solver.method chebyshev: the tolerance takes about 1,800 sweeps; solver.max_iterations 1000 allows fewer"},
		{257, "float32", dirichlet, 1e-8, 1800,
			"solver.method chebyshev and grid.dtype float64: the tolerance takes about 1,800 sweeps"},
		{257, "float64", plate, 1e-8, 10000,
			"solver.method chebyshev: about 1,800 sweeps divide the norm by 1e8"},
		{257, "float64", plate, 1e-8, 9999, ""},
		{257, "float64", dirichlet, 0, 10000, ""},
		{257, "float64", dirichlet, 1e-20, 10000, ""},
		{33, "float64", dirichlet, 1e-8, 10000, ""},
	} {
		o := outlookOf(t, c.n, c.n, c.dtype, c.problem)
		s := configs.Solver{Tolerance: c.tolerance, MaxIterations: c.max}
		if got := o.ChebyshevHint(s, solver.Operator{}); got != c.want {
			t.Errorf("%d, %s, %g: %q, want %q", c.n, c.dtype, c.tolerance, got, c.want)
		}
	}
}

// A tolerance below the norm at which a run stalled is a warning, and one above it is none.
func TestChebyshevWarning(t *testing.T) {
	o := outlookOf(t, 513, 513, "float64", dirichlet) // stalled at 5.2e-14
	for _, c := range []struct {
		tolerance, relative float64
		want                string
	}{
		{1e-14, 0, "solver.tolerance 1e-14 is below what float64 attains on this mesh: a norm of about 5e-14; " +
			"a larger one is met"},
		{0, 1e-16, "solver.relative_tolerance 1e-16 is below what float64 attains on this mesh: a norm of about " +
			"5e-14; a larger one is met"},
		{1e-13, 0, "; "}, {0, 0, "; "},
	} {
		what, do := o.ChebyshevWarning(configs.Solver{Tolerance: c.tolerance, RelativeTolerance: c.relative})
		if what+"; "+do != c.want {
			t.Errorf("%g, %g: %q, want %q", c.tolerance, c.relative, what+"; "+do, c.want)
		}
	}
}
