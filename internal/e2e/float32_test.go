package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// With output.float32 the files hold the values of the field of float64, each rounded to float32, for any ranks. The
// report has their sums.
func TestFieldsAsFloat32(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	dir := t.TempDir()
	keys := []string{"grid.nx=97", "grid.ny=131", "grid.dtype=float64", "solver.method=jacobi",
		"solver.max_iterations=30", "output.picture=", "output.every=20"}
	const script = `
import sys, numpy as np
wide, narrow = sys.argv[1:]
for name in "field", "field-000000000", "field-000000020":
    u, v = np.load(wide + "/" + name + ".npy"), np.load(narrow + "/" + name + ".npy")
    print(u.dtype, v.dtype, v.shape, (u.astype(np.float32) == v).all())`
	for i, c := range []struct{ np, field, float32 string }{{"1", "field.npy", "false"}, {"1", "field.npy", "true"},
		{"3", "field.npy", "true"}, {"3", "field.vti", "true"}} {
		out := fmt.Sprint(i)
		end := run(t, dir, "launcher", append(set(append(keys, "output.dir="+out, "output.field="+c.field,
			"output.float32="+c.float32)...), "-np", c.np)...)
		if end.code != 0 {
			t.Fatalf("exit code %d\n%s", end.code, end.stderr)
		}
		report, err := os.ReadFile(filepath.Join(dir, out, "report.json"))
		if err != nil {
			t.Fatal(err)
		}
		if sum := rowsOf(t, filepath.Join(dir, out, c.field), 0); !strings.Contains(string(report), sum) {
			t.Errorf("np %s, %s: the report does not have the SHA-256 %s of the file", c.np, c.field, sum)
		}
		if i > 0 && readReport(t, filepath.Join(dir, out)).FieldSHA256 !=
			readReport(t, filepath.Join(dir, "0")).FieldSHA256 {
			t.Errorf("np %s, %s: another field", c.np, c.field)
		}
	}
	const line = "float64 float32 (131, 97) True"
	for _, narrow := range []string{"1", "2"} {
		got := pythonSays(t, python, script, filepath.Join(dir, "0"), filepath.Join(dir, narrow))
		if want := line + "\n" + line + "\n" + line; got != want {
			t.Errorf("run %s: NumPy says\n%s\nwant\n%s", narrow, got, want)
		}
	}
	const same = `
import sys, numpy as np
u = np.load(sys.argv[1] + "/2/field.npy")
print((np.memmap(sys.argv[1] + "/3/field.vti", "<f4", "r", 1024, u.shape) == u).all())`
	if got := pythonSays(t, python, same, dir); got != "True" {
		t.Errorf("field.vti has the values of field.npy: %s", got)
	}
}

// A value that float32 does not hold costs the file of the field, and says so.
func TestFieldBeyondFloat32(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	end := run(t, dir, "launcher", append(set("grid.nx=40", "grid.ny=50", "grid.dtype=float64", "solver.method=jacobi",
		"problem.preset=dirichlet", "problem.top=1e100", "solver.max_iterations=5", "output.picture=",
		"output.float32=true"), "-np", "2")...)
	if end.code != 1 || !strings.Contains(end.stderr, "field.npy is not written: rank 0 on ") ||
		!strings.Contains(end.stderr, "is beyond float32") {
		t.Errorf("exit code %d\n%s", end.code, end.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "field.npy")); !os.IsNotExist(err) {
		t.Errorf("field.npy: %v", err)
	}
}
