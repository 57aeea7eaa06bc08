package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// needPython returns a Python that has all of these modules, or skips the test visibly.
func needPython(t *testing.T, modules ...string) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} { // Debian's modules are those of Debian's Python
		if exec.Command(python, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return python
		}
	}
	t.Skipf("NOT RUN: %s needs Python with %s", t.Name(), strings.Join(modules, ", "))
	return ""
}

// pythonSays runs a script and returns what it prints.
func pythonSays(t *testing.T, python, script string, args ...string) string {
	t.Helper()
	out, err := exec.Command(python, append([]string{"-c", script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// rowsOf returns the SHA-256 of a file without its first bytes.
func rowsOf(t *testing.T, path string, head int) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data[head:]))
}

// VTK reads the field that three ranks wrote, with its spacings, and finds the values of the .npy file.
func TestFieldForVTK(t *testing.T) {
	t.Parallel()
	python := needPython(t, "vtk", "numpy")
	dir := t.TempDir()
	keys := []string{"grid.nx=70", "grid.ny=53", "grid.width=2", "grid.height=12.75", "solver.max_iterations=20",
		"grid.dtype=float64"}
	for _, name := range []string{"field.npy", "field.vti"} {
		out := run(t, dir, "launcher", append(set(append(keys, "output.dir="+name, "output.field="+name)...), "-np",
			"3")...)
		if out.code != 0 {
			t.Fatalf("exit code %d\n%s", out.code, out.stderr)
		}
	}
	const script = `
import sys, hashlib, vtk
from vtk.util.numpy_support import vtk_to_numpy
reader = vtk.vtkXMLImageDataReader()
reader.SetFileName(sys.argv[1])
reader.Update()
image = reader.GetOutput()
values = vtk_to_numpy(image.GetPointData().GetScalars())
print(image.GetDimensions(), image.GetSpacing(), image.GetPointData().GetScalars().GetName(), values.dtype,
      hashlib.sha256(values.tobytes()).hexdigest())`
	got := pythonSays(t, python, script, filepath.Join(dir, "field.vti", "field.vti"))
	want := "(70, 53, 1) (0.028985507246376812, 0.25, 1.0) u float64 " +
		rowsOf(t, filepath.Join(dir, "field.npy", "field.npy"), 128)
	if got != want {
		t.Errorf("VTK says %s\nwant %s", got, want)
	}
	report, err := os.ReadFile(filepath.Join(dir, "field.vti", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if sum := rowsOf(t, filepath.Join(dir, "field.vti", "field.vti"), 0); !strings.Contains(string(report), sum) {
		t.Errorf("the report does not have the SHA-256 %s of the file", sum)
	}
}

// Three ranks write the values of a Zarr group, over the group of an earlier run. A reader of the specification finds
// those of the .npy file, in chunks, the last with fewer rows.
func TestFieldAsZarr(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	dir := t.TempDir()
	keys := set("grid.nx=2048", "grid.ny=701", "grid.dtype=float64", "grid.width=2047", "grid.height=1398",
		"solver.max_iterations=3", "output.picture=", "output.field=field.zarr", "output.every=2 sweeps")
	for _, args := range [][]string{
		append(keys, "-np", "1"),
		append(keys, "-np", "3"),
		append(keys, "-np", "2", "--set", "output.dir=npy", "--set", "output.field=field.npy"),
	} {
		if out := run(t, dir, "launcher", args...); out.code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, out.code, out.stderr)
		}
	}
	script, err := os.ReadFile("testdata/zarr3.py")
	if err != nil {
		t.Fatal(err)
	}
	const about = "(701, 2048) float64 ['y', 'x'] ['x'] ['y'] 2047.0 1400.0 [234, 2048] "
	want := about + rowsOf(t, filepath.Join(dir, "npy", "field.npy"), 128)
	if got := pythonSays(t, python, string(script), filepath.Join(dir, "out/field.zarr")); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	first := pythonSays(t, python, string(script), filepath.Join(dir, "out/field-000000000.zarr"))
	if !strings.HasPrefix(first, about) || first == want {
		t.Errorf("the field before the first sweep: %s", first)
	}
	report, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := rowsOf(t, filepath.Join(dir, "out", "field.zarr", "u", "c", "0", "0"), 0)
	if !strings.Contains(string(report), sum) {
		t.Errorf("the report does not have the SHA-256 %s of the values' file", sum)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), "field-000000000.zarr field-000000002.zarr "+
		"field.zarr history.csv report.json"; got != want || err != nil {
		t.Errorf("files %s, %v; want %s", got, err, want)
	}
}

// Something else that has the name of a Zarr group is not replaced, and the run does not start.
func TestZarrReplacesOnlyGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "out", "field.zarr"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := run(t, dir, "launcher", append(set("output.field=field.zarr"), "-np", "1")...)
	want := `launcher: output.field "field.zarr": out/field.zarr exists and is no Zarr group of format 3`
	if out.code == 0 || !strings.Contains(out.stderr, want) {
		t.Errorf("exit code %d\n%s\nwant %s", out.code, out.stderr, want)
	}
}

// The lines of docs/outputs.md that write a field for ParaView write the mesh, its spacings and all values.
func TestFieldByLinesOfPython(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	page, err := os.ReadFile("../../docs/outputs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(page), "\n    import json, numpy\n")
	lines, _, _ = strings.Cut(lines, "\n\n")
	lines = "import json, numpy\n" + strings.ReplaceAll("\n"+lines, "\n    ", "\n") + `
data = open("field.vtk", "rb").read()
print(data[:-8*u.size].decode().replace("\n", "|"), (numpy.frombuffer(data[-8*u.size:], ">f8") == u.ravel()).all())`
	for dtype, method := range map[string]string{"float32": "jacobi", "float64": "multigrid"} {
		dir := t.TempDir()
		out := run(t, dir, "launcher", append(set("grid.nx=70", "grid.ny=53", "grid.width=2", "grid.height=13",
			"grid.dtype="+dtype, "solver.method="+method, "solver.max_iterations=3", "problem.preset=dirichlet",
			"problem.top=1"), "-np", "1")...)
		if out.code != 0 && out.code != 4 {
			t.Fatalf("exit code %d\n%s", out.code, out.stderr)
		}
		cmd := exec.Command(python, "-c", lines)
		cmd.Dir = dir
		got, err := cmd.CombinedOutput()
		const want = "# vtk DataFile Version 3.0|u|BINARY|DATASET STRUCTURED_POINTS|DIMENSIONS 70 53 1|ORIGIN 0 0 0|" +
			"SPACING 0.028985507246376812 0.25 1|POINT_DATA 3710|SCALARS u double|LOOKUP_TABLE default| True\n"
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant %s\nof\n%s", dtype, err, got, want, lines)
		}
	}
}
