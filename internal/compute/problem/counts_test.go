package problem

import (
	"runtime"
	"testing"

	"jacobi/configs"
)

// TestCheckSamples counts the pieces of rows that the check before a run works out: of all rows where islands or values
// that are not allowed may hide, and else of samples.
func TestCheckSamples(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the count is the same in each run
	const ny = 1025
	for _, c := range []struct {
		name string
		set  func(*configs.Problem)
		all  bool
	}{
		{"a smooth coefficient", func(p *configs.Problem) { p.Coefficient = "1+x*y" }, false},
		{"and f and k2", func(p *configs.Problem) {
			p.Coefficient, p.Source, p.Screening = "1+x*y", "x-y", "y"
		}, false},
		{"a disc", func(p *configs.Problem) { p.Fixed = "hypot(x-0.5,y-0.5)<0.2" }, false},
		{"a hole", func(p *configs.Problem) { p.Coefficient = "hypot(x-0.5,y-0.5)<0.2?0:1" }, true},
		{"a coefficient whose bounds are not known to be allowed", func(p *configs.Problem) {
			p.Coefficient = "1+x-x*y"
		}, true},
		{"no side with values", func(p *configs.Problem) {
			p.Left, p.Right, p.Top, p.Bottom = "flux(1)", "flux(-1)", "neumann(0)", "neumann(0)"
			p.Coefficient = "1+x*y"
		}, true},
	} {
		cfg := configs.Default()
		cfg.Grid.NX, cfg.Grid.NY, cfg.Solver.Method = 33, ny, "multigrid"
		c.set(&cfg.Problem)
		p, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		pieces := 0
		p.OnWork(func() { pieces++ })
		if err := p.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if most := 12 * samples; (pieces > most) != c.all {
			t.Errorf("%s: %d pieces of %d rows were worked out", c.name, pieces, ny)
		}
	}
}
