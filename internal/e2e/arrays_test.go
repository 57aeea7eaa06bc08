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
	"path/filepath"
	"strings"
	"testing"

	"jacobi/internal/observe/output"
)

// arrays runs the launcher and returns its output.dir.
func arrays(t *testing.T, np int, keys ...string) string {
	t.Helper()
	dir := t.TempDir()
	keys = append([]string{"solver.method=multigrid", "grid.dtype=float64", "output.picture=",
		"solver.relative_tolerance=1e-11", "output.gradient=true"}, keys...)
	if out := run(t, dir, "launcher", append(set(keys...), "-np", fmt.Sprint(np))...); out.code != 0 {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	return filepath.Join(dir, "out")
}

// The flux density of a layered wall is that of its resistances in series, at all points. Points outside the material
// have none.
func TestGradientOfALayeredWall(t *testing.T) {
	t.Parallel()
	dir := arrays(t, 2, "grid.nx=66", "grid.ny=33", "problem.left=1", "problem.right=0", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.coefficient=iy > 20 ? 0 : x < 0.5 ? 100 : 1", "output.materials=true")
	want := 1 / (0.5/100 + 0.5)
	x, y := readField(t, filepath.Join(dir, "field-flux_x.npy"), 66, 33),
		readField(t, filepath.Join(dir, "field-flux_y.npy"), 66, 33)
	for i := range x {
		switch outside := i/66 > 20; {
		case outside && (!math.IsNaN(x[i]) || !math.IsNaN(y[i])), !outside && math.Abs(y[i]) > 1e-8,
			!outside && math.Abs(x[i]-want) > 1e-8:
			t.Fatalf("row %d, column %d: %v, %v; want %v, 0", i/66, i%66, x[i], y[i], want)
		}
	}
	for i, a := range readField(t, filepath.Join(dir, "field-coefficient.npy"), 66, 33) {
		want := 1.0
		if i%66 < 33 {
			want = 100
		}
		if i/66 > 20 {
			want = 0
		}
		if a != want {
			t.Fatalf("row %d, column %d: coefficient %v, want %v", i/66, i%66, a, want)
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

// All arrays are the same bits for any number of ranks, also across periodic ends, and files have the SHA-256 of the
// report. In a .vti file points outside the material are marked as hidden.
func TestArraysHaveTheSameBits(t *testing.T) {
	t.Parallel()
	problem := []string{"grid.nx=40", "grid.ny=31", "problem.left=1", "problem.right=robin(2, y)",
		"problem.top=periodic", "problem.bottom=periodic",
		"problem.coefficient=hypot(x-0.5, y-0.5) < 0.2 ? 0 : 1+y*(1-y)",
		"problem.fixed=abs(x-0.2) < 0.05 && y < 0.1", "problem.initial=3", "output.materials=true"}
	for _, ending := range []string{"npy", "vti", "zarr"} {
		var want map[string]string
		for _, np := range []int{1, 2, 3} {
			dir := arrays(t, np, append(problem, "output.field=u."+ending)...)
			got := map[string]string{}
			for _, f := range reportedFiles(t, dir) {
				if !strings.HasPrefix(f.Name, "u") {
					continue
				}
				path := filepath.Join(dir, f.Name)
				if ending == "zarr" {
					path = filepath.Join(path, "u/c/0/0")
				}
				data, err := os.ReadFile(path)
				if got[f.Name] = fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || got[f.Name] != f.SHA256 {
					t.Errorf("%s: SHA-256 %s, in the report %s (%v)", f.Name, got[f.Name], f.SHA256, err)
				}
				if ending == "vti" && np == 3 {
					checkGhosts(t, data, 40, 31)
				}
			}
			if want == nil {
				want = got
			}
			n := map[string]int{"npy": 6, "vti": 1, "zarr": 6}[ending]
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
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
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
		if d := math.Hypot(x-0.5, y-0.5); math.Abs(d-0.2) > 1e-9 && (mark == 2) != (d < 0.2) {
			t.Fatalf("row %d, column %d: mark %d", i/nx, i%nx, mark)
		}
	}
}

// Points outside the material are in no result and not in the range of the colours, and the picture shows them grey.
func TestPointsOutsideTheMaterial(t *testing.T) {
	t.Parallel()
	dir := arrays(t, 2, "grid.nx=65", "grid.ny=65", "problem.left=300", "problem.right=400", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.coefficient=hypot(x-0.5, y-0.5) < 0.2 ? 0 : 1", "output.picture=p.png")
	r := readReport(t, dir)
	lo, hi, mean := r.Results.Min.Value, r.Results.Max.Value, *r.Results.Mean
	if lo != 300 || hi != 400 || math.Abs(mean-350) > 1e-6 {
		t.Errorf("from %v to %v, mean %v; want 300 to 400, 350", lo, hi, mean)
	}
	f, err := os.Open(filepath.Join(dir, "p.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
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
