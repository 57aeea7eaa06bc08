package configs

import (
	"fmt"
	"strings"
	"testing"
)

// Regions and colours may float, with the flux into them. The problems of the solutions for single regions differ from
// their own in values of regions, sides and sources alone.
func TestConductors(t *testing.T) {
	c := Default()
	c.Grid.DType = "float64"
	c.Problem = Problem{Preset: "dirichlet", Left: "left.npy", Right: "robin(2*y, 3)", Bottom: "flux(4)",
		Source: "f.npy", Initial: "x", Coefficient: "1+x", Screening: "2",
		Regions: "a value=1e2 where=x == 1;b value=floating where=min(x, y) < 0.5 ;c value=floating(-2.5) where=y<0"}
	list := c.Problem.Conductors()
	if len(list) != 3 || *list[0].Value != 100 || list[0].Floating != nil || list[1].Name != "b" ||
		*list[1].Value != 0 || *list[1].Floating != 0 || *list[2].Floating != -2.5 || !c.Problem.Floats() {
		t.Fatalf("%+v", list)
	}
	grounded, excited := c.Grounded(), c.Excited(1)
	want := c
	want.Problem.Initial = "0"
	want.Problem.Regions = "a value=100 where=x == 1;b value=0 where=min(x, y) < 0.5 ;c value=0 where=y<0"
	if grounded != want || grounded.Problem.Floats() {
		t.Errorf("%+v", grounded.Problem)
	}
	want.Problem.Left, want.Problem.Right = "0", "robin(2*y, 0)"
	want.Problem.Top, want.Problem.Bottom = "0", "robin(0, 0)"
	want.Problem.Source = "0"
	want.Problem.Regions = "a value=0 where=x == 1;b value=1 where=min(x, y) < 0.5 ;c value=0 where=y<0"
	if excited != want {
		t.Errorf("%+v", excited.Problem)
	}
	c.Problem = Problem{Left: "neumann(3)", Top: "periodic", Bottom: "periodic", Initial: "0", Source: "0",
		Colours: "#b87333 name=strip, value=floating(2);#ffffff;#000000 coefficient=4 value=-1"}
	want = c
	want.Problem.Left, want.Problem.Right = "neumann(0)", "0"
	want.Problem.Colours = "#b87333 name=strip, value=0;#ffffff;#000000 coefficient=4 value=1"
	if list := c.Problem.Conductors(); len(list) != 2 || list[0].Name != "strip" || *list[0].Floating != 2 ||
		list[1].Name != "#000000" || c.Excited(1) != want {
		t.Errorf("%+v, %+v", list, c.Excited(1).Problem)
	}
}

func TestConductorsAreRefused(t *testing.T) {
	const form = "allowed are value=NUMBER, value=floating or value=floating(FLUX) and, at last, where=CONDITION"
	for _, value := range []string{"floating()", "floating(x)", "floating(1", "floating1", "floating(1)2",
		"floating(1,2)", "Floating", "floating(1e999)"} {
		text := "a value=" + value + " where=x<1"
		want := fmt.Sprintf("%q: %q: %s", text, "value="+value, form)
		if _, err := ParseRegions(text); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	var many, drawn []string
	for i := range 33 {
		many = append(many, fmt.Sprintf("r%d value=floating where=x<%d", i, i))
		drawn = append(drawn, fmt.Sprintf("#0000%02x value=1", i))
	}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Problem.Regions = strings.Join(many, ";") },
			"problem.regions: 33 regions are floating; at most 32 are allowed"},
		{func(c *Config) { c.Problem.Colours, c.Output.Matrix = strings.Join(drawn, ";"), true },
			"output.matrix true: problem.colours has 33 regions with values; at most 32 are allowed"},
		{func(c *Config) { c.Problem.Regions, c.Solver.Method = many[0], Jacobi },
			"problem.regions floating: needs solver.method multigrid, not jacobi"},
	} {
		cfg := Default()
		cfg.Solver.Method, cfg.Solver.Why, cfg.Grid.DType, cfg.Problem.Preset = Multigrid, "", "float64", ""
		c.change(&cfg)
		if err := Validate(cfg); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
