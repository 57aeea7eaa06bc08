package e2e

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
)

// edged is a problem with an electrode, two materials and lines of points that half of the mesh does not have.
var edged = cycling("grid.nx=150", "grid.ny=98", "problem.preset=", "problem.top=1", "problem.right=neumann(0)",
	"problem.fixed=hypot(x-0.4, y-0.3) < 0.11", "problem.coefficient=x+y < 0.9 ? 1 : 7", "solver.tolerance=0",
	"solver.relative_tolerance=1e-9", "output.probes=a=(0.7,0.5);b=(0.2,0.7)..(0.8,0.7)/3")

// What the mesh leaves of errors has the same digits for any number of ranks, transport and restart, and the field has
// the bits of a run that does not ask for it.
func TestErrorOfTheMesh(t *testing.T) {
	t.Parallel()
	want, first := solve(t, onRanks(1, edged...)...)
	mesh, errors, probes := first.Accuracy.Mesh, first.Results.Errors, first.ProbeErrors
	if mesh == nil || mesh.Error == nil || !(*mesh.Error > 1e-3 && *mesh.Error < 3e-2) || errors == nil ||
		!reflect.DeepEqual(mesh.Meshes, [][2]int{{76, 50}, {39, 26}}) || len(errors.Regions) != 1 ||
		len(probes["a"]) != 1 || len(probes["b"]) != 3 || !(*probes["a"][0] > 1e-5 && *probes["a"][0] < 1e-2) {
		t.Fatalf("%+v, %+v, %+v", mesh, errors, probes)
	}
	for np, more := range map[int][]string{1: {"device.kernel=portable"}, 2: {"halo.transport=nats"}, 3: nil} {
		got, r := solve(t, onRanks(np, with(edged, more...)...)...)
		same(t, got, want, np)
		if !reflect.DeepEqual(r.Accuracy.Mesh, mesh) || !reflect.DeepEqual(r.Results.Errors, errors) ||
			!reflect.DeepEqual(r.ProbeErrors, probes) {
			t.Errorf("%d ranks: %+v, %+v; want %+v, %+v", np, r.Accuracy.Mesh, r.Results.Errors, mesh, errors)
		}
	}
	got, r := solve(t, onRanks(2, with(edged, "solver.mesh_error=off")...)...)
	if same(t, got, want); r.Accuracy.Mesh != nil || r.Results.Errors != nil {
		t.Errorf("off: %+v", r.Accuracy.Mesh)
	}
	dir := filepath.Join(t.TempDir(), "saved")
	solve(t, onRanks(2, with(edged, "checkpoint.every=2", "checkpoint.dir="+dir, "solver.max_iterations=3")...)...)
	got, r = solve(t, append(onRanks(1, edged...), "--resume", dir)...)
	if got.sha != want.sha || !reflect.DeepEqual(r.Accuracy.Mesh, mesh) {
		t.Errorf("resumed: %+v, %+v; want %+v, %+v", got, r.Accuracy.Mesh, want, mesh)
	}
}

// A rank alone on a GPU solves the coarser meshes beside the run, and states the same errors.
func TestErrorOfTheMeshOnEmulatedGPUs(t *testing.T) {
	t.Parallel()
	env := libraryPath(emulatetest.Build(t))
	layers := cycling("problem.preset=", "problem.top=1", "problem.coefficient=x < 0.4 ? 1 : 7", "solver.tolerance=0",
		"solver.relative_tolerance=1e-9")
	for _, keys := range [][]string{edged,
		with(layers, "grid.nx=129", "grid.ny=9"), // the coarsest levels of the meshes differ in size
		with(layers, "grid.nx=140", "grid.ny=17")} {
		want, first := solve(t, onRanks(1, with(keys, "device.backend=cpu")...)...)
		for _, r := range sameOnGPUs(t, env, keys, want, []string{"1", "2"}) {
			if !reflect.DeepEqual(r.Accuracy.Mesh, first.Accuracy.Mesh) ||
				!reflect.DeepEqual(r.Results.Errors, first.Results.Errors) ||
				!reflect.DeepEqual(r.ProbeErrors, first.ProbeErrors) {
				t.Errorf("%d ranks: %+v, %+v; want %+v, %+v", len(r.Ranks), r.Accuracy.Mesh, r.Results.Errors,
					first.Accuracy.Mesh, first.Results.Errors)
			}
		}
	}
}

// A run that is stopped while a coarser mesh is solved beside it keeps its files, and says why the mesh's error is not
// known. Neither run would end by itself.
func TestStopBesideCoarserMeshes(t *testing.T) {
	t.Parallel()
	env := libraryPath(emulatetest.Build(t))
	for _, keys := range [][]string{edged, with(conducting, "output.matrix=false")} {
		dir := t.TempDir()
		cmd := command(limited(t), dir, "launcher", onRanks(1, with(keys, "solver.relative_tolerance=0",
			"solver.mesh_error=on", "solver.max_iterations=1000000000", "device.backend=cuda")...)...)
		cmd.Env = append(cmd.Env, env...)
		l := startCommand(t, cmd)
		l.waitFor(` cycles \(`)
		l.signal(os.Interrupt)
		l.ends(130)
		got, r := answerIn(t, filepath.Join(dir, "out"))
		if m := r.Accuracy.Mesh; got.reason != "interrupted" || m == nil ||
			!strings.HasSuffix(m.Why, "the run was stopped") {
			t.Errorf("%+v, %+v", got, m)
		}
	}
}

// The summary says that the mesh's error is not known where there is no coarser mesh of the problem, and why.
func TestErrorOfTheMeshIsNotKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSource(t, dir, false) // 60 x 40
	for _, c := range []struct{ set, want string }{
		{"problem.source=f.npy", `problem.source "f.npy" is an array on this mesh`},
		{"problem.source=ix == 10 ? 1 : 0", `problem.source "ix == 10 ? 1 : 0" counts points`},
		{"grid.ny=7", "half of the mesh has too few points"},
		{"problem.source=x > 0.5 ? 1 : 0", ""},
	} {
		out := mustRun(t, dir, "launcher", set("device.backend=cpu", "grid.nx=60", "grid.ny=40", "problem.top=1",
			"problem.preset=", "solver.method=auto", "grid.dtype=float64", c.set)...)
		if known := !strings.Contains(out.stdout, "the mesh's own error is not known: "); known != (c.want == "") ||
			!strings.Contains(out.stdout, c.want) {
			t.Errorf("%s: %s", c.set, out.stdout)
		}
	}
}

// A study solves no coarser meshes, unless it is asked to.
func TestStudyOfTheErrorOfTheMesh(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"auto": false, "on": true} {
		dir := t.TempDir()
		keys := with(small, "solver.method=multigrid", "solver.mesh_error="+value)
		mustRun(t, dir, "launcher", studyOf(keys, "--vary", "problem.top=1,2")...)
		for _, l := range studyLines(t, dir) {
			if got := strings.Contains(string(l.Results), `"errors":`); got != want {
				t.Errorf("%s: %s", value, l.Results)
			}
		}
	}
}
