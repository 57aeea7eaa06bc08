package configs

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// A run of many has the configuration that Load gives it alone, and ranks get that from its document.
func TestRunsOfOneStart(t *testing.T) {
	for _, sources := range []Options{
		{},
		{Set: []string{"problem.top=1", "solver.tolerance=1e-6", "run.ranks=2"}},
		{Set: []string{"grid.dtype=float32", "grid.height=2"}, Environ: []string{"JACOBI_PROBLEM_LEFT=periodic"}},
		{Set: []string{"solver.method=jacobi", "output.results=false", "halo.depth=4"}},
	} {
		base, err := LoadBase(sources)
		if err != nil {
			t.Fatal(err)
		}
		if alone, err := Load(sources); err != nil || base.Config() != alone {
			t.Errorf("%v: %+v, want %+v (%v)", sources, base.Config(), alone, err)
		}
		for _, own := range []map[string]any{
			{},
			{"problem.preset": "dirichlet"},
			{"grid.nx": 129, "problem.screening": "1e2", "Problem.Source": "x*y"},
			{"solver.relative_tolerance": 1e-3, "solver.method": "multigrid"},
			{"grid.dtype": "float64", "grid.height": "auto", "output.field": "f.npy"},
		} {
			alone := sources
			for name, value := range own {
				alone.Set = append(alone.Set[:len(alone.Set):len(alone.Set)], name+"="+asSet(value))
			}
			want, err := Load(alone)
			if err != nil {
				t.Fatal(err)
			}
			got, err := base.With(own, "run 1", noFile)
			if err != nil || got != want {
				t.Errorf("%v with %v: %v\n%+v, want\n%+v", sources, own, err, got, want)
			}
			document, err := Document(Planned{Config: want})
			if err != nil {
				t.Fatal(err)
			}
			ranks, err := passed(want)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := FromDocument(document, want); err != nil || got.Config != ranks {
				t.Errorf("%s: %v\n%+v, want\n%+v", document, err, got, ranks)
			}
		}
	}
}

func noFile(string) string { return "" }

func asSet(v any) string { return strings.Trim(quote("", v), `"`) }

// Errors name the key, the run, the value and what is allowed.
func TestRunsOfOneStartRefuse(t *testing.T) {
	base, err := LoadBase(Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = base.With(map[string]any{"grid.nx": "many", "grid.mx": 3, "nats.url": "x", "trace.from": 1}, "run 7",
		noFile)
	const want = `unknown key grid.mx (run 7): did you mean grid.nx?
grid.nx "many" (run 7): must be an integer, 3 to 2147483647
nats.url (run 7): the key belongs to the start of the ranks, and is the same for all runs
trace.from (run 7): the key is of a run that is alone`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want\n%s", err, want)
	}
	c := base.Config()
	if err := CheckMany(c); err != nil {
		t.Error(err)
	}
	c.Output.History, c.Output.Report = Stdout, Stdout
	const sole = `output.history "-": standard output is of a run that is alone
output.report "-": standard output is of a run that is alone`
	if err := CheckMany(c); err == nil || err.Error() != sole {
		t.Errorf("%v, want\n%s", err, sole)
	}
}

// A file that a line of a file of runs names lies beside that, or in the working directory; one of --vary means the
// working directory.
func TestRunsOfOneStartFindTheirFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("cases", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cases/both.npy", "both.npy", "here.npy"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, err := LoadBase(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, value, want, beside string }{
		{"problem.source", "both.npy", "cases/both.npy", "cases"},
		{"problem.source", "here.npy", "here.npy", "cases"},
		{"problem.source", "x*y", "x*y", "cases"},
		{"problem.initial", "both.npy", "both.npy", ""}, // of --vary
		{"problem.preset", "dirichlet", "", ""},
	} {
		got, err := base.With(map[string]any{c.key: c.value}, "run 1", func(key string) string {
			if key == "problem.initial" {
				return ""
			}
			return "cases/runs.jsonl"
		})
		if p := got.Problem; err != nil || p.Source+p.Initial != c.want || p.Dir != c.beside {
			t.Errorf("%s: %q, %q beside %q, %v; want %q beside %q", c.key, p.Source, p.Initial, p.Dir, err, c.want,
				c.beside)
		}
	}
}

// Given has the keys that a source gives, defaults too, but not those of the start of the ranks. Reads has the files
// that a run reads, with the paths that With finds.
func TestIdentityOfABase(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("cases", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cases/a.npy", "cases/run.yaml"} {
		if err := os.WriteFile(name, []byte("{problem: {source: a.npy, top: 1.50}, solver: {tolerance: 1e-8}}"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, err := LoadBase(Options{File: "cases/run.yaml", Set: []string{"run.ranks=2", "halo.depth=3", "grid.nx=9"},
		Environ: []string{"JACOBI_OUTPUT_DIR=o", "JACOBI_PROBLEM_LEFT=x"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"problem.source": "cases/a.npy", "problem.top": "1.5", "problem.left": "x",
		"solver.tolerance": "1e-08", "grid.nx": "9"}
	if got := base.Given(); !maps.Equal(got, want) {
		t.Errorf("given %v, want %v", got, want)
	}
	for _, c := range []struct {
		own  map[string]any
		want []string
	}{
		{nil, []string{"cases/a.npy"}},
		{map[string]any{"grid.nx": 17}, []string{"cases/a.npy"}},
		{map[string]any{"problem.source": 3}, nil},
		{map[string]any{"problem.source": "x.npy + 1", "problem.drawing": "a.PNG", "problem.fixed": "a.npy"},
			[]string{"cases/a.npy", "a.PNG"}},
	} {
		got := base.Reads(c.own, func(string) string { return "cases/runs.jsonl" })
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.own, got, c.want)
		}
		config, err := base.With(c.own, "run 1", func(string) string { return "cases/runs.jsonl" })
		var paths []string
		for _, in := range config.Inputs() {
			paths = append(paths, in.Path)
		}
		if slices.Sort(paths); err != nil || !slices.Equal(paths, slices.Sorted(slices.Values(got))) {
			t.Errorf("%v: With names %v, %v; want %v", c.own, paths, err, got)
		}
	}
}
