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
