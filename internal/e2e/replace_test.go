package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A run says whose files it replaces, and leaves none of them beside its own, with a launcher and without.
func TestRunReplacesAnother(t *testing.T) {
	t.Parallel()
	size := set("grid.nx=64", "grid.ny=48", "solver.max_iterations=20")
	rich := append(set("run.name=first", "output.every=5", "output.probes=c=(0.5,0.5)", "output.animation=film.gif",
		"output.trace=trace.json", "output.field=field.vti"), size...)
	for program, plain := range map[string][]string{
		"launcher": append(slices.Clone(size), "-np", "2"), "jacobi-rank": append(set("run.ranks=1"), size...),
	} {
		t.Run(program, func(t *testing.T) {
			dir := t.TempDir()
			first := run(t, dir, "launcher", append(rich, "-np", "2")...)
			if first.code != 0 || strings.Contains(first.stderr, "replaces") {
				t.Fatalf("exit code %d\n%s", first.code, first.stderr)
			}
			mine := filepath.Join(dir, "out", "mine.csv")
			if err := os.WriteFile(mine, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			out := run(t, dir, program, plain...)
			text := `out has the files of run \S+ \(first \(.*\)\), which ended on [-0-9]+ [:0-9]+: ` +
				`this run replaces them, and removes film\.gif, field\.vti, trace\.json, probes\.csv, ` +
				`field\.pvd, field-\*\.vti \(5 fields\)\n`
			if out.code != 0 || !regexp.MustCompile(text).MatchString(out.stderr) {
				t.Errorf("exit code %d, want %s in\n%s", out.code, text, out.stderr)
			}
			var names []string
			entries, err := os.ReadDir(filepath.Join(dir, "out"))
			for _, e := range entries {
				names = append(names, e.Name())
			}
			want := []string{"field.npy", "field.png", "history.csv", "mine.csv", "report.json"}
			if !slices.Equal(names, want) || err != nil {
				t.Errorf("files %q, %v, want %q", names, err, want)
			}
		})
	}
}
