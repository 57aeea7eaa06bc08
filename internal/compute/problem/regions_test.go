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
			`where=x<1": "name=b": allowed are value=NUMBER, value=floating or value=floating(FLUX) and, at last, ` +
			`where=CONDITION`},
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

// Regions that float have the values that were found, or 0 before that, and say so.
func TestFloatingRegions(t *testing.T) {
	rows := drawn("cb..", "c...", "....", "....")
	drawn := withDrawing(t, drawn("cc..", "cc..", "...b", "...."))
	drawn.Problem.Colours = "#b87333 name=strip value=floating; #1565c0 name=wire value=-2; #ffffff name=air"
	for _, c := range []struct {
		cfg    configs.Config
		iy, ix int // of a point in the region that floats
		setup  func(Setup) string
		want   [2]string
	}{
		{withRegions("a value=floating(-2.5) where=x < 0.2; b value=1 where=x > 0.8"), 3, 4,
			func(s Setup) string { return s.Regions }, [2]string{"a floating(-2.5), b 1", "a 0.75 (floating), b 1"}},
		{drawn, 1, 1, func(s Setup) string { return strings.TrimPrefix(s.Drawing, drawn.Problem.Drawing) },
			[2]string{": strip floating, wire -2, air free", ": strip 0.75 (floating), wire -2, air free"}},
	} {
		for i, values := range [][]float64{nil, {0.75}} {
			p, err := Valued(t.Context(), c.cfg, values)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			row := make([]byte, p.Mesh().RowBytes())
			if err := p.Row(c.iy, row); err != nil {
				t.Fatal(err)
			}
			got := valueAt(p.mesh.DType, row[8*c.ix:])
			if got != 0.75*float64(i) || !p.RegionFloats(0) || p.RegionFloats(1) {
				t.Errorf("%v: %g, floating %t and %t", values, got, p.RegionFloats(0), p.RegionFloats(1))
			}
			if got := c.setup(p.Setup(-1)); got != c.want[i] {
				t.Errorf("%v: %q, want %q", values, got, c.want[i])
			}
		}
	}
	touching := withDrawing(t, rows)
	touching.Problem.Colours = "#b87333 value=floating; #1565c0 value=0; #ffffff"
	p := open(t, touching)
	const want = "#b87333 and #1565c0 touch at column 0, row 0"
	if w := strings.Join(p.Warnings(t.Context()), "\n"); !strings.Contains(w, want) {
		t.Errorf("warnings %q, want %s", w, want)
	}
}
