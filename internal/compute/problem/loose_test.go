package problem

import (
	"encoding/json"
	"fmt"
	"testing"

	"jacobi/configs"
)

// looseOf returns a problem with insulated sides, for multigrid.
func looseOf(t *testing.T, nx, ny int, change func(*configs.Problem)) *Problem {
	t.Helper()
	const wall = "neumann(0)"
	c := config(nx, ny, "float64", configs.Problem{Left: wall, Right: wall, Top: wall, Bottom: wall})
	change(&c.Problem)
	c.Solver.Method = configs.Multigrid
	return open(t, c)
}

// What is taken off is exact: a constant to the last bit, a flux through a side over the area, both at once; and the
// same for any division of the rows.
func TestTakenOff(t *testing.T) {
	for _, c := range []struct {
		nx, ny           int
		change           func(*configs.Problem)
		amount, relative float64
	}{
		{7, 5, func(p *configs.Problem) { p.Source = "0.1" }, 0.1, 1},
		{129, 65, func(p *configs.Problem) { p.Source = "1e-300" }, 1e-300, 1},
		{9, 9, func(p *configs.Problem) { p.Source = "x - 0.5" }, 0, 0},
		{9, 9, func(p *configs.Problem) { p.Right = "flux(1)" }, 1, 1},
		{9, 9, func(p *configs.Problem) { p.Source, p.Bottom = "3", "flux(-1)" }, 2, 0.5},
		{9, 9, func(p *configs.Problem) { p.Source, p.Bottom = "-1", "flux(y)" }, 0, 0},
		{9, 5, func(p *configs.Problem) { p.Right, p.Coefficient = "neumann(1)", "2" }, 2, 1},
		{9, 9, func(p *configs.Problem) { p.Right, p.Coefficient = "flux(1)", "2 + x" }, 1, 1},
		{9, 9, func(p *configs.Problem) {
			p.Left, p.Right, p.Source = "periodic", "periodic", "ix == 0 ? 7 : 1"
		}, 1, 1},
		{9, 9, func(p *configs.Problem) {
			p.Left, p.Right, p.Source = "periodic", "periodic", "ix == 7 ? 8 : 1"
		}, 2, 1},
		// A hole of one point and what lies beside it: 62 of 64 cells are left, of which 2 have the source 31.
		{9, 9, func(p *configs.Problem) {
			p.Coefficient = "ix == 4 and iy >= 4 and iy <= 5 ? 0 : 1"
			p.Source = "iy == 2 and ix >= 3 and ix <= 4 ? 31 : 0"
		}, 1, 1},
		// A part that nothing drives does not count.
		{9, 9, func(p *configs.Problem) {
			p.Coefficient, p.Source = "ix == 4 ? 0 : 1", "ix == 1 and iy == 1 ? 28 : 0"
		}, 1, 1},
	} {
		for _, rows := range [][]int{{c.ny}, {1, c.ny - 3, 2}} {
			p := looseOf(t, c.nx, c.ny, c.change)
			got := balanceIn(t, p, rows...)
			if got.Amount != c.amount || got.Relative != c.relative {
				t.Errorf("%+v in %v: %+v, want %v and %v", p.config.Problem, rows, got.TakenOff, c.amount, c.relative)
			}
			f := make([]float64, c.nx)
			if err := p.RightHandSide(1, 0, f); err != nil {
				t.Fatal(err)
			}
			before := make([]float64, c.nx)
			if err := looseOf(t, c.nx, c.ny, c.change).RightHandSide(1, 0, before); err != nil {
				t.Fatal(err)
			}
			for ix := range f {
				if f[ix] != before[ix]-c.amount {
					t.Errorf("column %d: the source is %v, and was %v", ix, f[ix], before[ix])
				}
			}
		}
	}
}

// balanceIn surveys p in stripes of the given numbers of rows, as ranks do, and takes off what they find.
func balanceIn(t *testing.T, p *Problem, stripes ...int) *Surplus {
	t.Helper()
	var all []Survey
	lo := p.Mesh().Interior().Lo
	for _, n := range stripes {
		s, err := p.Survey(t.Context(), lo, lo+n)
		if err != nil {
			t.Fatal(err)
		}
		lo += n
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var told Survey
		if err := json.Unmarshal(b, &told); err != nil {
			t.Fatal(err)
		}
		all = append(all, told)
	}
	var islands *Islands
	if all[0].Any {
		var err error
		if islands, err = p.UniteSurveys(all); err != nil {
			t.Fatal(err)
		}
	}
	s, err := p.Balance(all, islands)
	if err != nil {
		t.Fatal(err)
	}
	p.TakeOff(s)
	return s
}

// More than rounding is a warning, which has the amount, and so has the description of the problem.
func TestUnbalanced(t *testing.T) {
	for source, want := range map[string]string{
		"x - 0.5":         "",
		"cos(pi*x)":       "",
		"x - 0.5 + 1e-13": "",
		"0.25 + (x < 0.5 ? 0.5 : -0.5)": "no side has values, and what flows in adds up to 0.504 of its absolute " +
			"values and not to 0: 0.25 is taken off the source at each point, so that there is a solution",
	} {
		p := looseOf(t, 65, 33, func(p *configs.Problem) { p.Source = source })
		if err := p.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.Taken().Unbalanced(); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
		line := [2]string{"Constant", fmt.Sprintf("the field has the mean 0, as no side has values; %.6g is taken off "+
			"the source", p.Taken().Amount)}
		if lines := p.Setup(0).Lines(); lines[len(lines)-1] != line {
			t.Errorf("%s: %q, want %q", source, lines, line)
		}
	}
	if got := (*Surplus)(nil).Unbalanced(); got != "" {
		t.Errorf("%q about a problem that is not loose", got)
	}
}

// What cannot be solved is refused: a field that would be 0, and two parts that are driven.
func TestBadLooseProblems(t *testing.T) {
	const nothing = `problem.left "neumann(0)", right "neumann(0)", top "neumann(0)", bottom "neumann(0)", source ` +
		`%q: no side has values and nothing flows in, so the field would be 0 everywhere; give a source, a flux or a ` +
		`value on a side`
	for _, c := range []struct {
		source, coefficient, want string
	}{
		{"0", "1", fmt.Sprintf(nothing, "0")},
		{"0 * x", "1", fmt.Sprintf(nothing, "0 * x")},
		{"0", "1 + x", fmt.Sprintf(nothing, "0")},
		{"x - 0.5", "ix == 4 ? 0 : 1", `problem.source "x - 0.5", problem.top "neumann(0)": at row 0, column 5 ` +
			`(x = 0.625, y = 0) they add to a second part of the material that touches no side and no point with ` +
			`values; one alone could be solved: make them 0 in the others, or give the parts values`},
	} {
		p := looseOf(t, 9, 9, func(p *configs.Problem) { p.Source, p.Coefficient = c.source, c.coefficient })
		if err := p.Check(t.Context()); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
