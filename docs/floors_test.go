package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// floors are those of internal/ (docs/architecture.md), from the lowest up.
var floors = []string{"base", "compute", "net", "observe", "run", "tools"}

// neverImport has, by folder, what its packages do not import: the solver and the links know no device, backends know
// no network and no transport, a run file knows nothing that runs it, and outputs know no device. Nothing but a program
// imports a program.
var neverImport = map[string]string{
	"solver":               "cuda halo configs internal/net internal/observe internal/run internal/tools",
	"halo":                 "cuda configs internal/compute internal/observe internal/run internal/tools",
	"cuda":                 "halo configs internal/compute internal/net internal/observe internal/run internal/tools",
	"configs":              "cuda halo internal/compute internal/net internal/observe internal/run internal/tools",
	"internal/compute/cpu": "cuda halo configs",
	"internal/run/outputs": "cuda internal/compute/cpu internal/run/rank",
}

// mustNotImport returns why a package must not import another; "" if it may.
func mustNotImport(from, to string) string {
	floor := func(path string) int {
		rest, _ := strings.CutPrefix(path, "internal/")
		return slices.Index(floors, strings.Split(rest, "/")[0])
	}
	if strings.HasPrefix(from, "internal/") && floor(from) < floor(to) && strings.HasPrefix(to, "internal/") {
		return "a floor imports those below it"
	}
	for folder, never := range neverImport {
		for n := range strings.FieldsSeq(never + " cmd") {
			if within(from, folder) && within(to, n) {
				return folder + " imports nothing of " + n
			}
		}
	}
	return ""
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// Imports point down. Tests may look at floors above.
func TestImportsPointDown(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return errorOr(err, fs.SkipDir)
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := strings.TrimPrefix(filepath.Dir(path), "../")
		if at := strings.Split(from, "/"); at[0] == "internal" {
			seen[at[1]] = true
		}
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if to, own := strings.CutPrefix(name, "jacobi/"); own && mustNotImport(from, to) != "" {
				t.Errorf("%s imports %s: %s", strings.TrimPrefix(path, "../"), to, mustNotImport(from, to))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, floor := range floors {
		if !seen[floor] {
			t.Errorf("internal/%s has no package", floor)
		}
	}
	entries, err := os.ReadDir("../internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "e2e" && !slices.Contains(floors, e.Name()) {
			t.Errorf("internal/%s is on no floor", e.Name())
		}
	}
}

// The rules find what they are there for.
func TestImportsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		from, to string
		refused  bool
	}{
		{"internal/run/rank", "internal/tools/soak", true},
		{"internal/run/rank", "internal/observe/output", false},
		{"internal/base/shm", "internal/compute/cpu", true},
		{"internal/tools/tasks", "internal/run/rank", false},
		{"solver/multigrid", "cuda/driver", true},
		{"halo/reduce", "internal/net/roster", false},
		{"cuda", "solver", false},
	} {
		if why := mustNotImport(c.from, c.to); (why != "") != c.refused {
			t.Errorf("%s imports %s: %q", c.from, c.to, why)
		}
	}
}
