package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jacobi/internal/observe/output"
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

// fieldHashOf returns the hash of the field in a .npy file, as reports have it.
func fieldHashOf(t *testing.T, path string) string {
	t.Helper()
	data := readText(t, path)
	shape := regexp.MustCompile(`'shape': \((\d+), \d+\)`).FindStringSubmatch(data[:128])
	if shape == nil {
		t.Fatalf("%s has no shape", path)
	}
	ny, err := strconv.Atoi(shape[1])
	if err != nil {
		t.Fatal(err)
	}
	var sums []byte
	for row := range slices.Chunk([]byte(data[128:]), (len(data)-128)/ny) {
		sum := sha256.Sum256(row)
		sums = append(sums, sum[:]...)
	}
	return fmt.Sprintf("%x", sha256.Sum256(sums))
}

// saysReportOf checks that the report in dir has the size of a file of the field beside it.
func saysReportOf(t *testing.T, dir, file string) {
	t.Helper()
	name, _, _ := strings.Cut(file, "/")
	want := fmt.Sprintf("{%s %d }", name, len(readText(t, dir, file)))
	if files := fmt.Sprint(reportedFiles(t, dir)); !strings.Contains(files, want) {
		t.Errorf("the report lists %s, want %s", files, want)
	}
}

// VTK reads the field that three ranks wrote, with its spacings, and finds the values of the .npy file.
func TestFieldForVTK(t *testing.T) {
	t.Parallel()
	python := needPython(t, "vtk", "numpy")
	dir := t.TempDir()
	for _, name := range []string{"field.npy", "field.vti"} {
		mustRun(t, dir, "launcher", onRanks(3, "grid.nx=70", "grid.ny=53", "grid.width=2", "grid.height=12.75",
			"solver.max_iterations=20", "grid.dtype=float64", "output.dir="+name, "output.field="+name)...)
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
	saysReportOf(t, filepath.Join(dir, "field.vti"), "field.vti")
}

// Three ranks write the values of a Zarr group, over the group of an earlier run. A reader of the specification finds
// those of the .npy file, in chunks, the last with fewer rows.
func TestFieldAsZarr(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	dir := t.TempDir()
	keys := []string{"grid.nx=2048", "grid.ny=701", "grid.dtype=float64", "grid.width=2047", "grid.height=1398",
		"solver.max_iterations=3", "output.picture=", "output.field=field.zarr", "output.every=2 sweeps"}
	mustRun(t, dir, "launcher", onRanks(1, keys...)...)
	mustRun(t, dir, "launcher", onRanks(3, keys...)...)
	mustRun(t, dir, "launcher", onRanks(2, with(keys, "output.dir=npy", "output.field=field.npy")...)...)
	script := readText(t, "testdata/zarr3.py")
	const about = "(701, 2048) float64 ['y', 'x'] ['x'] ['y'] 2047.0 1400.0 [234, 2048] "
	want := about + rowsOf(t, filepath.Join(dir, "npy", "field.npy"), 128)
	if got := pythonSays(t, python, script, filepath.Join(dir, "out/field.zarr")); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	first := pythonSays(t, python, script, filepath.Join(dir, "out/field-000000000.zarr"))
	if !strings.HasPrefix(first, about) || first == want {
		t.Errorf("the field before the first sweep: %s", first)
	}
	saysReportOf(t, filepath.Join(dir, "out"), "field.zarr/u/c/0/0")
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	if len(entries) != 6 || err != nil { // of three times, the last field, history and report
		t.Errorf("files %v, %v; want 6", entries, err)
	}
}

// The lines of docs/outputs.md that write a field for ParaView write the mesh, its spacings and all values.
func TestFieldByLinesOfPython(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	_, lines, _ := strings.Cut(readText(t, "../../docs/outputs.md"), "\n    import json, numpy\n")
	lines, _, _ = strings.Cut(lines, "\n\n")
	lines = "import json, numpy\n" + strings.ReplaceAll("\n"+lines, "\n    ", "\n") + `
data = open("field.vtk", "rb").read()
print(data[:-8*u.size].decode().replace("\n", "|"), (numpy.frombuffer(data[-8*u.size:], ">f8") == u.ravel()).all())`
	for _, dtype := range []string{"float32", "float64"} {
		dir := t.TempDir()
		mustRun(t, dir, "launcher", onRanks(1, "grid.nx=70", "grid.ny=53", "grid.width=2", "grid.height=13",
			"grid.dtype="+dtype, "solver.tolerance=0", "solver.max_iterations=3", "problem.preset=dirichlet",
			"problem.top=1")...)
		got := pythonSays(t, python, "import os; os.chdir("+strconv.Quote(dir)+")\n"+lines)
		const want = "# vtk DataFile Version 3.0|u|BINARY|DATASET STRUCTURED_POINTS|DIMENSIONS 70 53 1|ORIGIN 0 0 0|" +
			"SPACING 0.028985507246376812 0.25 1|POINT_DATA 3710|SCALARS u double|LOOKUP_TABLE default| True"
		if got != want {
			t.Errorf("%s: %s\nwant %s\nof\n%s", dtype, got, want, lines)
		}
	}
}

// With output.float32 the files hold the values of the field of float64, each rounded to float32, for any ranks. The
// report has their sums.
func TestFieldsAsFloat32(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	dir := t.TempDir()
	for i, c := range []struct{ np, field, float32 string }{{"1", "field.npy", "false"}, {"3", "field.npy", "true"},
		{"2", "field.vti", "true"}} {
		mustRun(t, dir, "launcher", onRanks(c.np, "grid.nx=97", "grid.ny=131", "grid.dtype=float64",
			"solver.max_iterations=30", "output.picture=", "output.every=20", "output.dir="+fmt.Sprint(i),
			"output.field="+c.field, "output.float32="+c.float32)...)
		out := filepath.Join(dir, fmt.Sprint(i))
		saysReportOf(t, out, c.field)
		if readReport(t, out).FieldHash != readReport(t, filepath.Join(dir, "0")).FieldHash {
			t.Errorf("np %s, %s: another field", c.np, c.field)
		}
	}
	const script = `
import os, sys, numpy as np
os.chdir(sys.argv[1])
for name in "field", "field-000000000", "field-000000020":
    u, v = np.load("0/" + name + ".npy"), np.load("1/" + name + ".npy")
    w = np.memmap("2/" + name + ".vti", "<f4", "r", 1024, u.shape)
    print(u.dtype, v.dtype, v.shape, (u.astype(np.float32) == v).all(), (w == v).all())`
	const line = "float64 float32 (131, 97) True True"
	if got, want := pythonSays(t, python, script, dir), line+"\n"+line+"\n"+line; got != want {
		t.Errorf("NumPy says\n%s\nwant\n%s", got, want)
	}
}

// A field too small for files of float32 is warned of.
func TestFloat32LosesTheField(t *testing.T) {
	t.Parallel()
	const want = "field.npy: the largest value of the field is 7.37e-52, and float32 loses digits below 1.18e-38: " +
		"set grid.dtype=float64 and output.float32=false"
	r := runNatural(t, t.TempDir(), "launcher", onRanks("2", "grid.nx=65", "grid.ny=65", "grid.dtype=float32",
		"problem.source=1e-50", "output.picture=")...)
	if n := strings.Count(r.stderr, want); n != 1 || r.code != 0 {
		t.Errorf("exit code %d, %d warnings of the file, want 1:\n%s", r.code, n, r.stderr)
	}
}

// arrays runs the launcher and returns its output.dir.
func arrays(t *testing.T, np int, keys ...string) string {
	t.Helper()
	dir := t.TempDir()
	mustRun(t, dir, "launcher", onRanks(np, append([]string{"solver.method=multigrid", "grid.dtype=float64",
		"output.picture=", "solver.relative_tolerance=1e-11", "output.gradient=true"}, keys...)...)...)
	return filepath.Join(dir, "out")
}

// The flux density of a layered wall is that of its resistances in series, at all points. Points outside the material
// have none.
func TestGradientOfALayeredWall(t *testing.T) {
	t.Parallel()
	dir := arrays(t, 2, "grid.nx=66", "grid.ny=33", "problem.left=1", "problem.right=0", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.coefficient=iy > 20 ? 0 : x < 0.5 ? 100 : 1", "output.materials=true",
		"solver.relative_tolerance=1e-12")
	read := func(name string) []float64 { return readField(t, filepath.Join(dir, "field-"+name+".npy"), 66, 33) }
	x, y, a, want := read("flux_x"), read("flux_y"), read("coefficient"), 1/(0.5/100+0.5)
	for i := range x {
		outside, material := i/66 > 20, 1.0
		if i%66 < 33 {
			material = 100
		}
		if outside {
			material = 0
		}
		if outside && (!math.IsNaN(x[i]) || !math.IsNaN(y[i])) || !outside && math.Abs(y[i]) > 1e-8 ||
			!outside && math.Abs(x[i]-want) > 1e-8 || a[i] != material {
			t.Fatalf("row %d, column %d: %v, %v, coefficient %v; want %v, 0, %v", i/66, i%66, x[i], y[i], a[i], want,
				material)
		}
	}
}

// The flux density of a smooth field has an error of second order between the walls, and insulated walls have
// none through them.
func TestGradientIsOfSecondOrder(t *testing.T) {
	t.Parallel()
	var worst [2]float64
	for k, n := range []int{33, 65} {
		dir := arrays(t, 2, fmt.Sprintf("grid.nx=%d", n), fmt.Sprintf("grid.ny=%d", n), "problem.preset=dirichlet",
			"problem.left=neumann(0)", "problem.right=-cosh(pi*y)", "problem.top=neumann(0)",
			"problem.bottom=cos(pi*x)*cosh(pi)")
		x, y := readField(t, filepath.Join(dir, "field-flux_x.npy"), n, n),
			readField(t, filepath.Join(dir, "field-flux_y.npy"), n, n)
		for i := range x {
			px, py := math.Pi*float64(i%n)/float64(n-1), math.Pi*float64(i/n)/float64(n-1)
			if i%n == n-1 || i/n == n-1 {
				continue
			}
			ex, ey := x[i]-math.Pi*math.Sin(px)*math.Cosh(py), y[i]+math.Pi*math.Cos(px)*math.Sinh(py)
			worst[k] = max(worst[k], math.Abs(ex), math.Abs(ey))
		}
	}
	if order := math.Log2(worst[0] / worst[1]); order < 1.8 || order > 2.2 {
		t.Errorf("errors %v: order %v", worst, order)
	}
}

// All arrays are the same bits for any number of ranks, also across periodic ends. In a .vti file points outside the
// material are marked as hidden.
func TestArraysHaveTheSameBits(t *testing.T) {
	t.Parallel()
	for ending, n := range map[string]int{"npy": 6, "vti": 1, "zarr": 6} {
		var want map[string]string
		for _, np := range []int{1, 3} {
			dir := arrays(t, np, "grid.nx=40", "grid.ny=31", "problem.left=1", "problem.right=robin(2, y)",
				"problem.top=periodic", "problem.bottom=periodic", "output.field=u."+ending,
				"problem.coefficient=hypot(x-0.5, y-0.5) < 0.2 ? 0 : 1+y*(1-y)",
				"problem.fixed=abs(x-0.2) < 0.05 && y < 0.1", "problem.initial=3", "output.materials=true")
			got := map[string]string{}
			for _, f := range reportedFiles(t, dir) {
				if !strings.HasPrefix(f.Name, "u") {
					continue
				}
				path := filepath.Join(dir, f.Name)
				if ending == "zarr" {
					path = filepath.Join(path, "u/c/0/0")
				}
				got[f.Name] = rowsOf(t, path, 0)
				if ending == "vti" && np == 3 {
					checkGhosts(t, []byte(readText(t, path)), 40, 31)
				}
			}
			if want == nil {
				want = got
			}
			if !maps.Equal(got, want) || len(got) != n {
				t.Errorf("np %d: %d files %v, want %d, %v", np, len(got), got, n, want)
			}
		}
	}
}

// reportedFiles returns the files that a report lists.
func reportedFiles(t *testing.T, dir string) []output.FileReport {
	t.Helper()
	var r struct{ Files []output.FileReport }
	if err := json.Unmarshal([]byte(readText(t, dir, "report.json")), &r); err != nil {
		t.Fatal(err)
	}
	return r.Files
}

// checkGhosts checks the last array of a .vti file, which marks the points of the hole.
func checkGhosts(t *testing.T, vti []byte, nx, ny int) {
	t.Helper()
	head, _, _ := bytes.Cut(vti, []byte("<AppendedData"))
	for _, name := range []string{"u", "flux_x", "flux_y", "coefficient", "fixed", "vtkGhostType"} {
		if !bytes.Contains(head, []byte(`Name="`+name+`"`)) {
			t.Errorf("no array %s in\n%s", name, head)
		}
	}
	end := bytes.LastIndex(vti, []byte("\n</AppendedData>"))
	for i, mark := range vti[end-nx*ny : end] {
		x, y := float64(i%nx)/float64(nx-1), float64((i/nx+ny-2)%(ny-2))/float64(ny-2)
		d := math.Hypot(x-0.5, y-0.5) // beside the edge, a face may conduct in part
		if outside := mark == 2; d > 0.2 && outside || d < 0.2-1.2/29 && !outside {
			t.Fatalf("row %d, column %d: mark %d", i/nx, i%nx, mark)
		}
	}
}

// Points outside the material are in no result and not in the range of the colours, and the picture shows them grey.
func TestPointsOutsideTheMaterial(t *testing.T) {
	t.Parallel()
	dir := arrays(t, 2, "grid.nx=65", "grid.ny=65", "problem.left=300", "problem.right=400", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.coefficient=hypot(x-0.5, y-0.5) < 0.2 ? 0 : 1", "output.picture=p.png")
	r := readReport(t, dir).Results
	if lo, hi, mean := r.Min.Value, r.Max.Value, *r.Mean; lo != 300 || hi != 400 || math.Abs(mean-350) > 1e-6 {
		t.Errorf("from %v to %v, mean %v; want 300 to 400, 350", lo, hi, mean)
	}
	img, err := png.Decode(strings.NewReader(readText(t, dir, "p.png")))
	if err != nil {
		t.Fatal(err)
	}
	colours := map[color.Color]int{}
	for i := range 500 {
		colours[img.At(img.Bounds().Dx()/2-250+i, img.Bounds().Dy()/2)]++
	}
	if grey := (color.RGBA{0xb4, 0xb4, 0xb4, 0xff}); colours[grey] < 200 || colours[grey] > 450 || len(colours) < 10 {
		t.Errorf("%d colours, %d pixels grey", len(colours), colours[grey])
	}
}
