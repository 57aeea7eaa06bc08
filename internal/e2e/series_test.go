package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// samplesOf returns the SHA-256 of each file in dir that belongs to a series of fields, of its index and of the file of
// the probes, by name.
func samplesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for _, pattern := range []string{"field-*", "*.pvd", "probes.csv"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			sums[filepath.Base(path)] = fmt.Sprintf("%x", sha256.Sum256([]byte(readText(t, path))))
		}
	}
	return sums
}

// sameSamples checks that the files in dir are the wanted ones.
func sameSamples(t *testing.T, dir string, want map[string]string, what ...any) {
	t.Helper()
	if got := samplesOf(t, dir); !maps.Equal(got, want) {
		t.Errorf("%v: files %v, want %v", what, got, want)
	}
}

// sampledField is a problem that ends between two fields of its series.
var sampledField = []string{"grid.nx=97", "grid.ny=131", "solver.tolerance=0.13", "solver.max_iterations=400",
	"output.field=field.vti", "output.picture=", "output.every=10 sweeps"}

// The points of probes are on the boundary, inside, and along lines across all stripes.
const probes = "output.probes=wall=[0,0]; end=(1,1); row=(0,0.5)..(1,0.5)/3; column=[48,0]..[48,130]"

// The files of a series and of probes are the same for any ranks, transport and depth. Each field is that of a run that
// ends there.
func TestSeries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := with(sampledField, probes)
	var want map[string]string
	for i, c := range [][]string{{"1", "halo.depth=1"}, {"2", "halo.transport=p2p", "halo.depth=16"},
		{"3", "halo.transport=nats", "halo.depth=7"}, {"3", "halo.transport=p2p", "halo.depth=8"}} {
		out := filepath.Join(dir, fmt.Sprint(i))
		end := mustRun(t, dir, "launcher", onRanks(c[0], with(with(keys, c[1:]...), "output.dir="+out)...)...)
		r := readReport(t, out)
		if want == nil {
			want = samplesOf(t, out)
		}
		sameSamples(t, out, want, c)
		wantSeries := fmt.Sprintf("&{Every:10 Files:field-*.vti Written:%d Failed:0 Sweeps:%d Index:field.pvd Error:}",
			r.Sweeps/10+2, r.Sweeps)
		lines := strings.Count(readText(t, out, "probes.csv"), "\n")
		if series := fmt.Sprintf("%+v", r.Series); series != wantSeries || len(want) != r.Sweeps/10+4 ||
			want["field.pvd"] == "" || lines != 1+(r.Sweeps/10+2)*136 || r.Sweeps%10 == 0 ||
			r.StopReason != "converged" {
			t.Errorf("%v: %d sweeps (%s), series %s, %d lines of probes", c, r.Sweeps, r.StopReason, series, lines)
		}
		for _, text := range []string{
			fmt.Sprintf("Series         %d fields field-*.vti, every 10 sweeps\n", r.Sweeps/10+2),
			fmt.Sprintf("\n                 %d samples of 136 points in ", r.Sweeps/10+2),
			fmt.Sprintf("  Files          %[1]s/history.csv\n                 %[1]s/field.vti\n                 "+
				"%[1]s/report.json\n                 %[1]s/field.pvd\n                 %[1]s/probes.csv\n\n", out),
		} {
			if !strings.Contains(end.stdout, text) {
				t.Errorf("no %q in\n%s", text, end.stdout)
			}
		}
	}
	mustRun(t, dir, "launcher", onRanks(2, with(sampledField, "output.dir=end", "output.every=",
		"solver.max_iterations=30", "solver.tolerance=0")...)...)
	if got := rowsOf(t, filepath.Join(dir, "end", "field.vti"), 0); got != want["field-000000030.vti"] {
		t.Errorf("the field after 30 sweeps is %s, that of the series %s", got, want["field-000000030.vti"])
	}
}

// A new run replaces the series of an earlier one. A run that goes on from a checkpoint continues series and probes.
// Ranks far away write the same files.
func TestSeriesGoesOn(t *testing.T) {
	t.Parallel()
	keys := with(sampledField, "output.field=field.npy", probes, "solver.tolerance=0", "solver.max_iterations=70")
	whole := t.TempDir()
	mustRun(t, whole, "launcher", onRanks(2, keys...)...)
	want := samplesOf(t, filepath.Join(whole, "out"))
	if len(want) != 9 {
		t.Fatalf("files %v", want)
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	for _, name := range []string{"field-000000080.npy", "field-000000025.npy", "field-1000000000.npy",
		"field-mine.npy"} {
		writeText(t, "old", out, name)
	}
	mustRun(t, dir, "launcher", onRanks(3, with(keys, "checkpoint.every=20 sweeps", "checkpoint.dir=saved",
		"solver.max_iterations=45")...)...)
	if got := slices.Sorted(maps.Keys(samplesOf(t, out))); len(got) != 8 || got[4] != "field-000000040.npy" ||
		got[5] != "field-000000045.npy" || got[6] != "field-mine.npy" {
		t.Fatalf("files %v", got)
	}
	mustRun(t, dir, "launcher", append(onRanks(2, keys...), "--resume", "saved")...)
	if err := os.Remove(filepath.Join(out, "field-mine.npy")); err != nil {
		t.Fatal(err)
	}
	sameSamples(t, out, want, "resumed")
	u, here := startServer(t), t.TempDir()
	for range 2 {
		startAgent(t, t.TempDir(), u, "--slots", "1")
	}
	mustRun(t, here, "launcher", onNodes(u, onRanks(2, keys...)...)...)
	sameSamples(t, filepath.Join(here, "out"), want, "far away")
}

// Cycles of multigrid have a series, too.
func TestSeriesOfCycles(t *testing.T) {
	t.Parallel()
	var want map[string]string
	for _, np := range []string{"1", "3"} {
		dir := t.TempDir()
		mustRun(t, dir, "launcher", onRanks(np, "grid.nx=70", "grid.ny=90", "grid.dtype=float64",
			"problem.preset=dirichlet", "solver.method=multigrid", "solver.tolerance=0", "solver.max_iterations=7",
			"output.every=3 cycles")...)
		if want == nil {
			want = samplesOf(t, filepath.Join(dir, "out"))
		}
		sameSamples(t, filepath.Join(dir, "out"), want, np)
	}
	if got := slices.Sorted(maps.Keys(want)); !slices.Equal(got, []string{"field-000000000.npy", "field-000000003.npy",
		"field-000000006.npy", "field-000000007.npy"}) {
		t.Errorf("files %v", got)
	}
}

// Without an interval, file, report and summary have the values of the end.
func TestProbesOfTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	end := mustRun(t, dir, "launcher", onRanks(2, "grid.nx=9", "grid.ny=17", "grid.dtype=float64",
		"problem.preset=dirichlet", "output.picture=", "output.probes=wall=(0.5,0); cut=[4,0]..[4,16]; mid=[4,8]")...)
	r := readReport(t, filepath.Join(dir, "out"))
	mid := r.Probed["mid"][0]
	lines := strings.Split(readText(t, dir, "out", "probes.csv"), "\n")
	if last := fmt.Sprintf("%d,mid,4,8,0.5,1,%v", r.Sweeps, mid); len(lines) != 21 || lines[19] != last ||
		!strings.HasPrefix(lines[1], fmt.Sprintf("%d,wall,4,0,0.5,0,1", r.Sweeps)) || len(r.Probed["cut"]) != 17 ||
		r.Probed["cut"][8] != mid || r.Probed["wall"][0] != 1 {
		t.Errorf("%d lines, the last %q, want %q; report %v", len(lines), lines[19], last, r.Probed)
	}
	want := fmt.Sprintf("  Probes         cut 17 points: min 0, max 1\n                 mid %.10g\n"+
		"                 wall 1\n                 1 sample of 19 points in out/probes.csv\n", mid)
	if !strings.Contains(end.stdout, want) {
		t.Errorf("no\n%s in\n%s", want, end.stdout)
	}
}

// A field of the series that cannot be written is in report and summary; the run goes on and writes the others.
func TestSeriesWithAFault(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "out", "field-000000010.npy"), 0o755); err != nil {
		t.Fatal(err)
	}
	end := mustRun(t, dir, "launcher", onRanks(2, with(sampledField, "output.field=field.npy",
		"solver.max_iterations=35", "solver.tolerance=0")...)...)
	const why = "put field-000000010.npy in place: out/field-000000010.npy exists and is no regular file"
	s := readReport(t, filepath.Join(dir, "out")).Series
	if s == nil || s.Written != 4 || s.Failed != 1 || s.Error != why {
		t.Errorf("series %+v", s)
	}
	if want := "4 fields field-*.npy, every 10 sweeps; 1 FAILED: " + why; !strings.Contains(
		strings.Join(strings.Fields(end.stdout), " "), want) {
		t.Errorf("no %q in\n%s", want, end.stdout)
	}
}

// VTK finds each field of the series where the index says, with the number of its sweeps as the time.
func TestSeriesForVTK(t *testing.T) {
	t.Parallel()
	python := needPython(t, "vtk", "numpy")
	dir := t.TempDir()
	keys := with(sampledField, "solver.max_iterations=20", "solver.tolerance=0")
	mustRun(t, dir, "launcher", onRanks(2, keys...)...)
	mustRun(t, dir, "launcher", onRanks(1, with(keys, "output.every=", "output.field=field.npy",
		"output.dir=end")...)...)
	const script = `
import sys, os, hashlib, vtk, xml.etree.ElementTree as xml
from vtk.util.numpy_support import vtk_to_numpy
for d in xml.parse(sys.argv[1]).getroot().find("Collection"):
    reader = vtk.vtkXMLImageDataReader()
    reader.SetFileName(os.path.join(os.path.dirname(sys.argv[1]), d.get("file")))
    reader.Update()
    values = vtk_to_numpy(reader.GetOutput().GetPointData().GetScalars())
    print(d.get("timestep"), hashlib.sha256(values.tobytes()).hexdigest())`
	got := strings.Split(pythonSays(t, python, script, filepath.Join(dir, "out", "field.pvd")), "\n")
	want := "20 " + rowsOf(t, filepath.Join(dir, "end", "field.npy"), 128)
	if len(got) != 3 || !strings.HasPrefix(got[0], "0 ") || !strings.HasPrefix(got[1], "10 ") || got[2] != want {
		t.Errorf("VTK says\n%q\nwant fields after 0 and 10 sweeps, and %s", got, want)
	}
}

// NumPy reads the file of the probes and finds the values of the fields of the series, bit by bit.
func TestProbesForNumPy(t *testing.T) {
	t.Parallel()
	python := needPython(t, "numpy")
	for _, dtype := range []string{"float32", "float64"} {
		dir := t.TempDir()
		mustRun(t, dir, "launcher", onRanks(3, with(sampledField, probes, "output.field=field.npy",
			"grid.dtype="+dtype, "solver.tolerance=0", "solver.max_iterations=70", "output.every=35")...)...)
		const script = `
import sys, numpy as np
rows = np.genfromtxt(sys.argv[1] + "/probes.csv", delimiter=",", names=True, dtype=None, encoding="utf8")
same = 0
for r in rows:
    u = np.load(sys.argv[1] + "/field-%09d.npy" % r["iteration"], mmap_mode="r")
    same += u[r["iy"], r["ix"]] == u.dtype.type(r["value"]) and r["x"] == r["ix"] / 96
print(len(rows), same, sorted(set(rows["iteration"].tolist())), sorted(set(rows["probe"].tolist())))`
		got := pythonSays(t, python, script, filepath.Join(dir, "out"))
		if want := "408 408 [0, 35, 70] ['column', 'end', 'row', 'wall']"; got != want {
			t.Errorf("%s: NumPy says %s, want %s", dtype, got, want)
		}
	}
}

// drawn returns a picture, as its bytes and decoded.
func drawn(t *testing.T, dir string) (data string, img image.Image) {
	t.Helper()
	data = readText(t, dir, "out", "field.png")
	img, err := png.Decode(bytes.NewReader([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	return data, img
}

// The picture of a field that is mostly 0 is not blank, and has the same bits for any number of ranks. The start of the
// run says which files will be written and how large they will be.
func TestPictureOfAFieldThatIsMostly0(t *testing.T) {
	draw := func(said string, args ...string) (string, image.Image) {
		t.Helper()
		dir := t.TempDir()
		out := mustRun(t, dir, "launcher", append(args, set("grid.nx=1200", "grid.ny=200",
			"solver.max_iterations=300")...)...)
		if !strings.Contains(out.stderr, "launcher: writes "+said+"\n") {
			t.Errorf("no %q in\n%s", said, out.stderr)
		}
		return drawn(t, dir)
	}
	one, img := draw("out/field.npy (938 KiB), field.png, history.csv, report.json", "-np", "1")
	alone := []string{"output.field=", "output.history=", "output.report="}
	if three, _ := draw("out/field.png", onRanks(3, alone...)...); one != three {
		t.Error("the picture of three ranks is another one than that of one")
	}
	_, linear := draw("out/field.png", onRanks(2, with(alone, "output.picture_scale=linear")...)...)
	if got, before := coloured(img), coloured(linear); got < 2*before || before == 0 {
		t.Errorf("%d pixels are coloured, %d on a linear scale: want twice as many", got, before)
	}
}

// coloured counts the pixels that are blue or red.
func coloured(img image.Image) (n int) {
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, _, b, _ := img.At(x, y).RGBA(); max(r, b)-min(r, b) > 0x2000 {
				n++
			}
		}
	}
	return n
}

// The picture outlines an electrode, with the same bits for any number of ranks.
func TestPictureOutlinesAnElectrode(t *testing.T) {
	var pictures [2]string
	var img image.Image
	for i, np := range []int{3, 1} {
		dir := t.TempDir()
		out := runNatural(t, dir, "launcher", onRanks(np, "problem.fixed=abs(x-0.5)<0.2 and abs(y-0.5)<0.2",
			"problem.top=1", "grid.nx=65")...)
		if out.code != 0 {
			t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
		}
		pictures[i], img = drawn(t, dir)
	}
	if pictures[0] != pictures[1] {
		t.Error("the picture of three ranks is another one than that of one")
	}
	var widths []int // of what is drawn with ink in a row through the electrode
	for x := 1; x < img.Bounds().Dx(); x++ {
		ink := color.RGBA{0x22, 0x22, 0x22, 0xff}
		switch y := img.Bounds().Dy() * 2 / 5; {
		case img.At(x, y) != ink:
		case img.At(x-1, y) != ink:
			widths = append(widths, 1)
		default:
			widths[len(widths)-1]++
		}
	}
	if want := []int{1, 2, 2, 1, 1, 1}; !slices.Equal(widths, want) { // the frame, and that of the colour bar
		t.Errorf("lines of %v pixels, want %v", widths, want)
	}
}
