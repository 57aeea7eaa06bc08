package problem

import (
	"errors"
	"runtime"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/results"
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

// TestFiguresShareRows counts the pieces of rows that the figures of a field work out: of each row the coefficient and
// the source once, for its part in the results and in the residual alike.
func TestFiguresShareRows(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the count is the same in each run
	const ny = 129
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY, cfg.Problem.Coefficient = 33, ny, "1+x*y"
	p, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	pieces := 0
	p.OnWork(func() { pieces++ })
	stripe := p.Mesh().Interior()
	tally := results.New(p, stripe)
	tally.Beside(func(iy int, above [2][]float64, row []float64) error {
		if above[0] == nil {
			return nil
		}
		_, err := p.Residual(iy-1, above[0], above[1], row)
		return err
	})
	rows := results.NewRows(p, stripe, tally)
	err = rows.AddRows(stripe.Lo, make([]byte, stripe.Rows()*p.Mesh().RowBytes()))
	if err := errors.Join(err, rows.End(nil)); err != nil {
		t.Fatal(err)
	}
	if want := ny + stripe.Rows() + 2; pieces != want {
		t.Errorf("%d pieces were worked out, want %d: %d rows of the coefficient, %d of the source and 2 walls", pieces,
			want, ny, stripe.Rows())
	}
}

// TestSurveyCountsFixed compares the fixed points that a survey counts with those of CountFixed, over two stripes.
func TestSurveyCountsFixed(t *testing.T) {
	for _, c := range []struct{ fixed, coefficient, source string }{
		{"hypot(x-0.5,y-0.5)<0.2", "1", "0"}, {"abs(x-0.5)<0.1", "1", "1"}, {"x<0.3 and y>0.6", "x<0.5?0:1+y", "0"},
		{"false", "1+x", "0"},
	} {
		cfg := configs.Default()
		cfg.Grid.NX, cfg.Grid.NY = 33, 201
		cfg.Problem.Fixed, cfg.Problem.Coefficient, cfg.Problem.Source = c.fixed, c.coefficient, c.source
		p, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range [][2]int{{1, 90}, {90, 200}} {
			s, err := p.Survey(t.Context(), rows[0], rows[1])
			if err != nil {
				t.Fatal(err)
			}
			want, err := p.CountFixed(t.Context(), rows[0], rows[1])
			if err != nil {
				t.Fatal(err)
			}
			if s.Fixed != want {
				t.Errorf("%+v, rows %v: %d fixed points, want %d", c, rows, s.Fixed, want)
			}
		}
	}
}
