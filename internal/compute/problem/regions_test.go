package problem

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"jacobi/configs"
)

// regionAt returns the number of the region of a point.
func regionAt(t *testing.T, p *Problem, iy, ix int) int {
	t.Helper()
	fixed, numbers := make([]bool, p.mesh.NX), make([]int, p.mesh.NX)
	if err := p.GivenRow(iy, fixed); err != nil {
		t.Fatal(err)
	}
	p.RegionRow(iy, fixed, numbers)
	return numbers[ix]
}

// withRegions returns the configuration of a 65 x 33 problem with regions.
func withRegions(regions string) configs.Config {
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY, cfg.Grid.DType = 65, 33, "float64"
	cfg.Problem = configs.Problem{Initial: "0.5*x", Regions: regions}
	return cfg
}

// Regions are what a condition and an initial field say in their place, and where two overlap, the later one counts.
func TestRegions(t *testing.T) {
	p := open(t, withRegions("disc value=1.5 where=hypot(x-0.3, y-0.5) < 0.17; bar value=-2 where=abs(x-0.45) < 0.04"))
	same := withRegions("")
	same.Problem.Fixed = "hypot(x-0.3, y-0.5) < 0.17 or abs(x-0.45) < 0.04"
	same.Problem.Initial = "abs(x-0.45) < 0.04 ? -2 : hypot(x-0.3, y-0.5) < 0.17 ? 1.5 : 0.5*x"
	q := open(t, same)
	for iy := range 33 {
		for _, of := range []func(p *Problem, dst []byte) error{
			func(p *Problem, dst []byte) error { return p.Row(iy, dst) },
			func(p *Problem, dst []byte) error { return p.ValueRow(iy, 0, dst) },
		} {
			a, b := make([]byte, 8*65), make([]byte, 8*65)
			if err := errors.Join(of(p, a), of(q, b)); err != nil || !bytes.Equal(a, b) {
				t.Fatalf("row %d differs (%v)", iy, err)
			}
		}
		if got, want := marks(t, p), marks(t, q); got != want {
			t.Fatalf("fixed points\n%s, want\n%s", got, want)
		}
	}
	if a, b, c := regionAt(t, p, 16, 19), regionAt(t, p, 16, 29), regionAt(t, p, 16, 40); a != 0 || b != 1 || c != -1 {
		t.Errorf("regions %d, %d and %d, want 0, 1 and -1", a, b, c)
	}
	if got := strings.Join(p.RegionNames(), ","); got != "disc,bar" {
		t.Errorf("regions %q", got)
	}
	if s := p.Setup(-1); s.Regions != "disc 1.5, bar -2" || s.Fixed != NoFixed {
		t.Errorf("set-up %+v", s)
	}
	if !p.Weighted() || open(t, withRegions("a value=1 where=x > 0.5; b value=0 where=ix == 3")).Weighted() {
		t.Error("areas have to be weighted, and points not")
	}
}

func TestRegionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*configs.Problem)
		want   string
	}{
		{func(p *configs.Problem) { p.Regions = "a value=1" }, `problem.regions "a value=1": must have the form NAME ` +
			`value=NUMBER where=CONDITION, with a NAME of at most 64 letters, digits, ., - and _`},
		{func(p *configs.Problem) { p.Regions = "a where=x<1" }, `problem.regions "a where=x<1": must have the form ` +
			`NAME value=NUMBER where=CONDITION, with a NAME of at most 64 letters, digits, ., - and _`},
		{func(p *configs.Problem) { p.Regions = "a value=1 name=b where=x<1" }, `problem.regions "a value=1 name=b ` +
			`where=x<1": "name=b": allowed are value=NUMBER and, at last, where=CONDITION`},
		{func(p *configs.Problem) { p.Regions += ";" + p.Regions }, `problem.regions "a value=1 where=x<0.5": a is ` +
			`given twice`},
		{func(p *configs.Problem) { p.Regions = "a value=1 where=x" }, `problem.regions: a: where "x": it is a ` +
			`number, not a condition`},
		{func(p *configs.Problem) { p.Regions = "a value=1 where=z<1" }, `problem.regions: a: where "z<1": column 1: ` +
			`unknown name z; did you mean x?`},
		{func(p *configs.Problem) { p.Fixed = "y<1" }, `problem.fixed "y<1": problem.regions says which points are ` +
			`fixed; name one of the two`},
	} {
		cfg := withRegions("a value=1 where=x<0.5")
		c.change(&cfg.Problem)
		if _, err := New(t.Context(), cfg); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
