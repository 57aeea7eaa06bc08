package configs

import (
	"maps"
	"os"
	"slices"
	"testing"
)

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
