package configs

import (
	"testing"

	"jacobi/solver"
)

func TestParseSide(t *testing.T) {
	for text, want := range map[string]Side{
		"1": {solver.Dirichlet, "1", ""}, "sin(pi*x)": {solver.Dirichlet, "sin(pi*x)", ""},
		"periodic": {Wall: solver.Periodic}, " periodic ": {Wall: solver.Periodic},
		"neumann(0)":                          {solver.Neumann, "0", ""},
		" neumann ( sin(y) * (1 + y) ) ":      {solver.Neumann, "sin(y) * (1 + y)", ""},
		"robin(2, 3*y)":                       {solver.Neumann, "3*y", "2"},
		"robin( max(x, y) , (1+x)*pow(x, 2))": {solver.Neumann, "(1+x)*pow(x, 2)", "max(x, y)"},
	} {
		if got, err := ParseSide(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestWalls(t *testing.T) {
	p := Problem{Preset: "gtc2019", Left: "periodic", Right: "periodic"}
	all := solver.Walls{Left: solver.Periodic, Right: solver.Periodic, Top: solver.Periodic, Bottom: solver.Periodic}
	if got, err := p.Walls("float32"); err != nil || got != all {
		t.Errorf("%+v, %v, want %+v", got, err, all)
	}
	p = Problem{Preset: "dirichlet", Right: "neumann(y)", Bottom: "neumann(0)"}
	want := solver.Walls{Right: solver.Neumann, Bottom: solver.Neumann}
	if got, err := p.Walls("float32"); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// The row of a Neumann wall is swept, so more ranks may share the mesh.
func TestRanksOfNeumannWalls(t *testing.T) {
	c := Default()
	c.Grid.NY, c.Run.Ranks, c.Problem.Preset = 9, 2, "dirichlet"
	if n := c.Working(); n != 1 {
		t.Errorf("%d ranks share rows 1 to 7, which are one group", n)
	}
	c.Problem.Bottom = "neumann(0)"
	if n := c.Working(); n != 2 {
		t.Errorf("%d ranks share two groups", n)
	}
}
