package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seriesOf returns the SHA-256 of each file in dir that belongs to a series of fields, or of its index, by name.
func seriesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for _, pattern := range []string{"field-*", "*.pvd"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sums[filepath.Base(path)] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
	}
	return sums
}

func namesOf(sums map[string]string) (names []string) {
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// sampledField is a problem that ends between two fields of its series.
var sampledField = []string{"grid.nx=97", "grid.ny=131", "solver.tolerance=0.13", "solver.max_iterations=400",
	"output.field=field.vti", "output.picture=", "output.every=10 sweeps"}

// The files of a series are the same for any ranks, transport and depth. Each is the field of a run that ends there.
func TestSeries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want map[string]string
	for i, c := range []struct {
		np       string
		settings []string
	}{
		{"1", []string{"halo.depth=1"}}, {"2", []string{"halo.transport=p2p", "halo.depth=16"}},
		{"3", []string{"halo.transport=nats", "halo.depth=7"}}, {"3", []string{"halo.transport=p2p", "halo.depth=8"}},
	} {
		out := filepath.Join(dir, fmt.Sprint(i))
		args := append(append(sampledField, c.settings...), "output.dir="+out)
		end := run(t, dir, "launcher", append(set(args...), "-np", c.np)...)
		if end.code != 0 {
			t.Fatalf("exit code %d\n%s", end.code, end.stderr)
		}
		r := readReport(t, out)
		got := seriesOf(t, out)
		if want == nil {
			want = got
		}
		wantSeries := fmt.Sprintf("&{Every:10 Files:field-*.vti Written:%d Failed:0 Sweeps:%d Index:field.pvd Error:}",
			r.Sweeps/10+1, r.Sweeps/10*10)
		if series := fmt.Sprintf("%+v", r.Series); series != wantSeries || len(got) != r.Sweeps/10+2 ||
			got["field.pvd"] == "" || !sameSums(got, want) || r.Sweeps%10 == 0 || r.StopReason != "converged" {
			t.Errorf("np %s, %v: %d sweeps (%s), series %s of %v, want %v; same bits: %v", c.np, c.settings, r.Sweeps,
				r.StopReason, series, namesOf(got), namesOf(want), sameSums(got, want))
		}
		for _, text := range []string{
			fmt.Sprintf("Series         %d fields field-*.vti, every 10 sweeps\n", r.Sweeps/10+1),
			fmt.Sprintf("  Files          %[1]s/history.csv\n                 %[1]s/field.vti\n"+
				"                 %[1]s/report.json\n                 %[1]s/field.pvd\n\n", out),
		} {
			if !strings.Contains(end.stdout, text) {
				t.Errorf("no %q in\n%s", text, end.stdout)
			}
		}
	}
	out := run(t, dir, "launcher", append(set(append(sampledField, "output.dir=end", "output.every=",
		"solver.max_iterations=30", "solver.tolerance=0")...), "-np", "2")...)
	if got := rowsOf(t, filepath.Join(dir, "end", "field.vti"), 0); out.code != 0 ||
		got != want["field-000000030.vti"] {
		t.Errorf("exit code %d; the field after 30 sweeps is %s, that of the series %s", out.code, got,
			want["field-000000030.vti"])
	}
}

func sameSums(a, b map[string]string) bool {
	for name, sum := range a {
		if b[name] != sum {
			return false
		}
	}
	return len(a) == len(b)
}

// A new run replaces the series of an earlier one. A run that goes on from a checkpoint continues the series. Ranks far
// away write the same files.
func TestSeriesGoesOn(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	args := append(sampledField, "output.field=field.npy", "solver.tolerance=0")
	end := run(t, whole, "launcher", append(set(append(args, "solver.max_iterations=70")...), "-np", "2")...)
	want := seriesOf(t, filepath.Join(whole, "out"))
	if end.code != 0 || len(want) != 8 {
		t.Fatalf("exit code %d, series %v\n%s", end.code, namesOf(want), end.stderr)
	}
	dir := t.TempDir()
	for _, stale := range []string{"field-000000080.npy", "field-000000025.npy", "field-1000000000.npy"} {
		if err := os.MkdirAll(filepath.Join(dir, "out"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "out", stale), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "out", "field-mine.npy"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	first := append(args, "checkpoint.every=20 sweeps", "checkpoint.dir=saved", "solver.max_iterations=45")
	end = run(t, dir, "launcher", append(set(first...), "-np", "3")...)
	if got := namesOf(seriesOf(t, filepath.Join(dir, "out"))); end.code != 0 || len(got) != 6 ||
		got[4] != "field-000000040.npy" || got[5] != "field-mine.npy" {
		t.Fatalf("exit code %d, series %v\n%s", end.code, got, end.stderr)
	}
	end = run(t, dir, "launcher", append(set(append(args, "solver.max_iterations=70")...), "-np", "2", "--resume",
		"saved")...)
	got := seriesOf(t, filepath.Join(dir, "out"))
	delete(got, "field-mine.npy")
	if end.code != 0 || !sameSums(got, want) {
		t.Errorf("exit code %d, series %v, want %v; same bits: %v", end.code, namesOf(got), namesOf(want),
			sameSums(got, want))
	}
	u, here := startServer(t), t.TempDir()
	for range 2 {
		startAgent(t, t.TempDir(), u, "--slots", "1")
	}
	end = run(t, here, "launcher", onNodes(u, append(set(append(args, "solver.max_iterations=70")...), "-np",
		"2")...)...)
	if got := seriesOf(t, filepath.Join(here, "out")); end.code != 0 || !sameSums(got, want) {
		t.Errorf("far away: exit code %d, series %v, want %v; same bits: %v\n%s", end.code, namesOf(got),
			namesOf(want), sameSums(got, want), end.stderr)
	}
}

// Cycles of multigrid have a series, too.
func TestSeriesOfCycles(t *testing.T) {
	t.Parallel()
	want := []string{"field-000000000.npy", "field-000000003.npy", "field-000000006.npy"}
	var sums map[string]string
	for _, np := range []string{"1", "3"} {
		dir := t.TempDir()
		end := run(t, dir, "launcher", append(set("grid.nx=70", "grid.ny=90", "grid.dtype=float64",
			"problem.preset=dirichlet", "solver.method=multigrid", "solver.tolerance=0", "solver.max_iterations=7",
			"output.every=3 cycles"), "-np", np)...)
		got := seriesOf(t, filepath.Join(dir, "out"))
		if sums == nil {
			sums = got
		}
		if end.code != 0 || !slices.Equal(namesOf(got), want) || !sameSums(got, sums) {
			t.Errorf("np %s: exit code %d, series %v, want %v; same bits: %v\n%s", np, end.code, namesOf(got), want,
				sameSums(got, sums), end.stderr)
		}
	}
}

// A field of the series that cannot be written is a warning; the run goes on and writes the others.
func TestSeriesWithAFault(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "out", "field-000000010.npy"), 0o755); err != nil {
		t.Fatal(err)
	}
	end := run(t, dir, "launcher", append(set(append(sampledField, "output.field=field.npy", "solver.max_iterations=35",
		"solver.tolerance=0")...), "-np", "2")...)
	r := readReport(t, filepath.Join(dir, "out"))
	const why = "put field-000000010.npy in place: out/field-000000010.npy exists and is no regular file"
	if end.code != 0 || r.Series == nil || r.Series.Written != 3 || r.Series.Failed != 1 || r.Series.Error != why {
		t.Errorf("exit code %d, %+v", end.code, r.Series)
	}
	for _, text := range []string{"field-000000010.npy is not written, the run goes on: " + why,
		"Series         3 fields field-*.npy, every 10 sweeps; 1 FAILED: " + why} {
		if !strings.Contains(strings.Join(strings.Fields(end.stdout+end.stderr), " "),
			strings.Join(strings.Fields(text), " ")) {
			t.Errorf("no %q in\n%s%s", text, end.stderr, end.stdout)
		}
	}
}

// VTK finds each field of the series where the index says, with the number of its sweeps as the time.
func TestSeriesForVTK(t *testing.T) {
	t.Parallel()
	python := needPython(t, "vtk", "numpy")
	dir := t.TempDir()
	keys := set(append(sampledField, "solver.max_iterations=25", "solver.tolerance=0")...)
	end := run(t, dir, "launcher", append(keys, "-np", "2")...)
	if end.code != 0 {
		t.Fatalf("exit code %d\n%s", end.code, end.stderr)
	}
	const script = `
import sys, os, hashlib, vtk, xml.etree.ElementTree as xml
from vtk.util.numpy_support import vtk_to_numpy
for d in xml.parse(sys.argv[1]).getroot().find("Collection"):
    reader = vtk.vtkXMLImageDataReader()
    reader.SetFileName(os.path.join(os.path.dirname(sys.argv[1]), d.get("file")))
    reader.Update()
    values = vtk_to_numpy(reader.GetOutput().GetPointData().GetScalars())
    print(d.get("timestep"), hashlib.sha256(values.tobytes()).hexdigest())`
	got := pythonSays(t, python, script, filepath.Join(dir, "out", "field.pvd"))
	var want []string
	for _, sweeps := range []string{"10", "20"} {
		end := run(t, dir, "launcher", append(set(append(sampledField, "solver.tolerance=0",
			"solver.max_iterations="+sweeps, "output.every=", "output.field=field.npy",
			"output.dir=at"+sweeps)...), "-np", "1")...)
		if end.code != 0 {
			t.Fatalf("exit code %d\n%s", end.code, end.stderr)
		}
		want = append(want, sweeps+" "+rowsOf(t, filepath.Join(dir, "at"+sweeps, "field.npy"), 128))
	}
	lines := strings.Split(got, "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "0 ") || !slices.Equal(lines[1:], want) {
		t.Errorf("VTK says\n%s\nwant a field after 0 sweeps and\n%s", got, strings.Join(want, "\n"))
	}
}
