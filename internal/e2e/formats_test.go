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
// those of the .npy file, in chunks, the last with fewer rows, and convert reads the group.
func TestFieldAsZarr(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	dir := t.TempDir()
	keys := set("grid.nx=2048", "grid.ny=701", "grid.dtype=float64", "grid.width=2047", "grid.height=1398",
		"solver.max_iterations=3", "output.picture=", "output.field=field.zarr", "output.every=2 sweeps")
	for _, args := range [][]string{
		append(keys, "-np", "1"),
		append(keys, "-np", "3"),
		{"convert", "out/field.zarr", "field.npy"},
		{"convert", "field.npy", "again.zarr", "--spacing", "1,2"},
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
	want := about + rowsOf(t, filepath.Join(dir, "field.npy"), 128)
	for _, name := range []string{"out/field.zarr", "again.zarr"} {
		if got := pythonSays(t, python, string(script), filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
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

// zarr-python reads a field converted to format 2. Its last chunk has fewer rows than the others.
func TestFieldForZarr(t *testing.T) {
	t.Parallel()
	python := needPython(t, "zarr", "numpy")
	dir := t.TempDir()
	for _, args := range [][]string{
		append(set("grid.nx=4096", "grid.ny=700", "solver.max_iterations=3"), "-np", "2"),
		{"convert", "out/field.npy", "field.zarr", "--spacing", "0.5,2", "--zarr-format", "2"},
	} {
		if out := run(t, dir, "launcher", args...); out.code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, out.code, out.stderr)
		}
	}
	const script = `
import sys, hashlib, zarr
for group in zarr.open(sys.argv[1], "r"), zarr.open_consolidated(sys.argv[1]):
    u, x, y = group["u"], group["x"], group["y"]
    print(u.shape, u.dtype, u.attrs["_ARRAY_DIMENSIONS"], x[4095], y[699], hashlib.sha256(u[:].tobytes()).hexdigest())`
	got := pythonSays(t, python, script, filepath.Join(dir, "field.zarr"))
	want := "(700, 4096) float32 ['y', 'x'] 2047.5 1398.0 " + rowsOf(t, filepath.Join(dir, "out", "field.npy"), 128)
	if got != want+"\n"+want {
		t.Errorf("zarr says %s\nwant twice %s", got, want)
	}
	t.Run("xarray", func(t *testing.T) { // takes no value for missing, not even 0
		python := needPython(t, "xarray", "zarr")
		const script = `
import sys, hashlib, xarray
d = xarray.open_zarr(sys.argv[1])
print(d.u.shape, d.u.dtype, list(d.u.dims), d.x.values[-1], d.y.values[-1],
      hashlib.sha256(d.u.values.tobytes()).hexdigest(), d.x.values[0])`
		if got := pythonSays(t, python, script, filepath.Join(dir, "field.zarr")); got != want+" 0.0" {
			t.Errorf("xarray says %s\nwant %s 0.0", got, want)
		}
	})
	for option, want := range map[[2]string]string{
		{"--spacing", "0.5"}:   "--spacing 0.5: must be two numbers above 0, as in 0.01,0.02",
		{"--zarr-format", "4"}: "--zarr-format 4: allowed are 2 and 3",
		{"--zarr-format", "2"}: `--zarr-format 2: the name "b.vti" does not end in .zarr`,
	} {
		out := run(t, dir, "launcher", "convert", "out/field.npy", "b.vti", option[0], option[1])
		if out.code != 1 || out.stderr != "launcher: "+want+"\n" {
			t.Errorf("%s: exit code %d, %q; want 1, %q", option, out.code, out.stderr, want)
		}
	}
}
