package rank

import (
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// The unit of the sums leaves the norms of the data, 1e-8 of the base and below, where a weak screening would allow a
// solution 1e12 times as large as its source.
func TestMagnitudeOfWeakScreening(t *testing.T) {
	c, err := configs.Load(configs.Options{Set: []string{"problem.source=sin(2*pi*x)", "problem.screening=1e-8",
		"problem.left=neumann(0)", "problem.right=neumann(0)", "problem.top=neumann(0)", "problem.bottom=neumann(0)",
		"grid.nx=65", "grid.ny=65"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	const source = 6.1e-5 // h^2/4
	j := &run{Config: c, prepared: prepared{problem: p}}
	e := j.magnitude(roster.Part{MaxSource: source})
	base := source * 65 / 1.5
	if blind := solver.Blind(p.Mesh(), e); blind > 1e-11*base || e < 0 {
		t.Errorf("magnitude %d hides norms up to %g of a base of about %g", e, blind, base)
	}
}
