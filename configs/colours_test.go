package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Options{File: path})
		want := strings.Replace(line, "1e-9", "1e-09", 1)
		if err != nil || c.Problem.Colours != want {
			t.Errorf("%s: %q, %v, want %s", name, c.Problem.Colours, err, want)
		}
	}
}

// Colours that mean nothing are refused, with what is wanted.
func TestWrongColours(t *testing.T) {
	for text, want := range map[string]string{
		"#fff":             `"#fff": must begin with a colour, as in #b87333 name=strip value=1`,
		"#b87333 value=1;": `"": must be a colour such as #b87333, with semicolons between colours`,
		"#b87333 value=x":  `"#b87333 value=x": value "x": must be a number that a float64 holds`,
		"#b87333 coefficient=-1": `"#b87333 coefficient=-1": coefficient "-1": must be 0, where there is no ` +
			`material, or 1e-60 to 1e+60`,
		"#b87333 value=1,5": `"#b87333 value=1,5": "5": name=..., value=... and coefficient=... are ` +
			`allowed`,
		"#b87333 value=1 value=2":                        `"#b87333 value=1 value=2": value is given twice`,
		"#b87333; #B87333":                               `"#B87333": #b87333 is given twice`,
		"#b87333 name=a value=1; #ffffff name=a value=2": `"#ffffff name=a value=2": a is given twice`,
		"#b87333 name=\x1b value=1": `"#b87333 name=\x1b value=1": name "\x1b": must be a letter, and up to 63 ` +
			`letters, digits, dots, dashes and underscores`,
		strings.Repeat("#000000;", 2): `"#000000": #000000 is given twice`,
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
		"[7]": `[...] (file F): must be colours, such as "#b87333": {name: strip, value: 1}`,
		"{'#b87333': 1}": `{...} (file F): "#b87333": must be {name: ..., value: ..., coefficient: ` +
			`...}, or {} for free points`,
		"{'#b87333': {name: 'a b'}}": `{...} (file F): "#b87333": name "a b": must be a number, or text ` +
			`without spaces and semicolons`,
	} {
		path := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(path, []byte("problem: {colours: "+data+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want = "problem.colours " + strings.Replace(want, "F)", path+")", 1)
		if _, err := Load(Options{File: path}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
}
