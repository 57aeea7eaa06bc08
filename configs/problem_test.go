package configs

import (
	"fmt"
	"strings"
	"testing"

	"jacobi/solver"
)

func TestParseSide(t *testing.T) {
	for text, want := range map[string]Side{
		"1": {solver.Dirichlet, "1", ""}, "sin(pi*x)": {solver.Dirichlet, "sin(pi*x)", ""},
		"periodic": {Wall: solver.Periodic}, " periodic ": {Wall: solver.Periodic},
		"neumann(0)":                          {solver.Neumann, "0", ""},
		" neumann ( sin(y) * (1 + y) ) ":      {solver.Neumann, "sin(y) * (1 + y)", ""},
		"flux( max(x, y) )":                   {solver.Neumann, "max(x, y)", "0"},
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

func TestResolve(t *testing.T) {
	side := "sin(2 * float32(pi) * iy / (ny - 1))"
	for _, c := range []struct {
		p     Problem
		dtype string
		want  Problem
	}{
		{Problem{Preset: "gtc2019"}, "float32", Problem{Preset: "gtc2019", Left: side, Right: side, Top: "periodic",
			Bottom: "periodic", Initial: "0", Source: "0", Fixed: "false", Coefficient: "1", Screening: "0"}},
		{Problem{Preset: "gtc2019", Left: "1"}, "float64", Problem{Preset: "gtc2019", Left: "1",
			Right: "sin(2 * pi * iy / (ny - 1))", Top: "periodic", Bottom: "periodic", Initial: "0", Source: "0",
			Fixed: "false", Coefficient: "1", Screening: "0"}},
		{Problem{Preset: "dirichlet", Initial: "a.npy", Drawing: "a.png", Colours: "#ffffff"}, "float32",
			Problem{Preset: "dirichlet", Left: "0", Right: "0", Top: "1", Bottom: "0", Initial: "a.npy", Source: "0",
				Fixed: "false", Drawing: "a.png", Colours: "#ffffff", Coefficient: "1", Screening: "0"}},
	} {
		if got, err := c.p.Resolve(c.dtype); err != nil || got != c.want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// Colours are read from one line, or as a section of a run file of any format, which becomes the line.
func TestColours(t *testing.T) {
	const line = "#1565C0 name=ground value=-0.5; #b87333 name=strip value=1e-9; #ffffff"
	all, err := ParseColours(line)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		text := c.String() + " " + c.Title()
		if c.Value != nil {
			text += fmt.Sprint(" ", *c.Value)
		}
		got = append(got, text)
	}
	if want := "#1565c0 ground -0.5, #b87333 strip 1e-09, #ffffff #ffffff"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
	again, err := ParseColours("#1565C0 name=ground,value=-0.5; #b87333, name=strip, value=1e-9;#ffffff")
	if err != nil || fmt.Sprintf("%d %s %g", len(again), again[0].Title(), *again[1].Value) != "3 ground 1e-09" {
		t.Errorf("with commas: %+v, %v", again, err)
	}
	for name, data := range map[string]string{
		"a.yaml": "problem:\n  colours:\n    '#b87333': {value: 1e-9, name: strip}\n    '#ffffff': {}\n" +
			"    '#1565C0': {name: ground, value: -0.50}\n",
		"a.json": `{"problem": {"colours": {"#1565C0": {"name": "ground", "value": -0.5},` +
			`"#ffffff": null, "#b87333": {"name": "strip", "value": 1e-9}}}}`,
		"a.toml": "[problem.colours]\n\"#1565C0\" = {name = \"ground\", value = -0.5}\n" +
			"\"#b87333\" = {name = \"strip\", value = 1e-9}\n\"#ffffff\" = {}\n",
	} {
		want := strings.Replace(line, "1e-9", "1e-09", 1)
		if c := mustMerge(t, name, data, Options{}); c.Problem.Colours != want {
			t.Errorf("%s: %q, want %s", name, c.Problem.Colours, want)
		}
	}
}

// Regions are read from one line, or as a section of a run file, which becomes the line.
func TestRegions(t *testing.T) {
	const line = "plus value=1 where=hypot(x-0.3, y-0.5) < 0.1; wall value=-1e-09 where=x == 0 or y == 0"
	all, err := ParseRegions(line)
	if err != nil || len(all) != 2 || all[0].Name != "plus" || *all[0].Value != 1 || all[1].Name != "wall" ||
		all[0].Where != "hypot(x-0.3, y-0.5) < 0.1" || all[1].Where != "x == 0 or y == 0" || *all[1].Value != -1e-9 {
		t.Errorf("%+v, %v", all, err)
	}
	for name, data := range map[string]string{
		"a.yaml": "problem:\n  regions:\n    wall: {where: x == 0 or y == 0, value: -1e-9}\n" +
			"    plus: {value: 1.0, where: 'hypot(x-0.3, y-0.5) < 0.1'}\n",
		"a.json": `{"problem": {"regions": {"wall": {"where": "x == 0 or y == 0", "value": -1e-9},` +
			`"plus": {"value": 1, "where": "hypot(x-0.3, y-0.5) < 0.1"}}}}`,
	} {
		if c := mustMerge(t, name, data, Options{}); c.Problem.Regions != line {
			t.Errorf("%s: %q, want %s", name, c.Problem.Regions, line)
		}
	}
	const want = `problem.regions {...} (file a.yaml): "a": must be regions, such as strip: {where: "y < 0.1", ` +
		`value: 1}`
	_, err = mergeConfig(Options{File: "a.yaml"}, []byte("problem: {regions: {a: {where: 'x<1; b', value: 1}}}\n"))
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Colours that mean nothing are refused, with what is wanted.
func TestWrongColours(t *testing.T) {
	const attributes = `: allowed are name=NAME of at most 64 letters, digits, ., - and _, value=NUMBER, ` +
		"value=floating, value=floating(FLUX) and coefficient=NUMBER, 0 or 1e-60 to 1e+60"
	for text, want := range map[string]string{
		"#fff":                    `"#fff": must begin with a colour, as in #b87333 name=strip value=1`,
		"#b87333 value=1;":        `"": must begin with a colour, as in #b87333 name=strip value=1`,
		"#b87333 value=x":         `"#b87333 value=x": "value=x"` + attributes,
		"#b87333 coefficient=-1":  `"#b87333 coefficient=-1": "coefficient=-1"` + attributes,
		"#b87333 value=1,5":       `"#b87333 value=1,5": "5"` + attributes,
		"#b87333 value=1 value=2": `"#b87333 value=1 value=2": value is given twice`,
		"#b87333; #B87333":        `"#B87333": #b87333 is given twice`,
		"#b87333 name=a value=1; #ffffff name=a value=2": `"#ffffff name=a value=2": a is given twice`,
		"#b87333 name=\x1b value=1":                      `"#b87333 name=\x1b value=1": "name=\x1b"` + attributes,
	} {
		if _, err := ParseColours(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	var many []string
	for i := range maxColours + 1 {
		many = append(many, fmt.Sprintf("#%06x", i))
	}
	if _, err := ParseColours(strings.Join(many, ";")); err == nil || err.Error() != "at most 255 colours are allowed" {
		t.Errorf("%v, want at most 255", err)
	}
	for data, want := range map[string]string{
		"[7]":                        "[...] (file a.yaml): ",
		"{'#b87333': 1}":             "{...} (file a.yaml): ",
		"{'#b87333': {name: 'a b'}}": `{...} (file a.yaml): "#b87333": `,
	} {
		_, err := mergeConfig(Options{File: "a.yaml"}, []byte("problem: {colours: "+data+"}\n"))
		want = "problem.colours " + want + `must be colours, such as "#b87333": {name: strip, value: 1}`
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
}
