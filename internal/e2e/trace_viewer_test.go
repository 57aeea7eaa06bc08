package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jacobi/internal/observe/trace/traceread"
)

// catapult serves a page that shows a trace in Catapult's trace viewer, which is behind chrome://tracing. Go has a copy
// for go tool trace.
func catapult(t *testing.T, trace string) *httptest.Server {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("NOT RUN: %s needs the sources of Go: %v", t.Name(), err)
	}
	viewer := filepath.Join(strings.TrimSpace(string(root)), "src/internal/trace/traceviewer/static")
	if _, err := os.Stat(filepath.Join(viewer, "trace_viewer_full.html")); err != nil {
		t.Skipf("NOT RUN: %s: %v", t.Name(), err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServer(http.Dir(viewer))))
	for path, file := range map[string]string{"/trace.json": trace, "/{$}": "testdata/traceviewer.html"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// seenTrace is what Catapult makes of a trace.
type seenTrace struct {
	Warnings  []string
	Processes []struct {
		Name   string
		Tracks []struct {
			Name   string
			Slices int
			Top    int // that no other slice encloses
		}
	}
	Arrows [][2]string // the slices at both ends
}

// Catapult shows every rank, track, slice and arrow of a trace, slices within those that enclose them, and has nothing
// to warn of.
func TestTraceInAViewer(t *testing.T) {
	dir := t.TempDir()
	res := run(t, dir, "launcher", append(set("grid.nx=128", "grid.ny=128", "solver.max_iterations=60",
		"halo.depth=4", "device.threads=1", "output.trace=trace.json",
		"checkpoint.every=20 sweeps", "checkpoint.dir=saved"), "-np", "4")...)
	if res.code != 0 {
		t.Fatalf("exit code %d\n%s%s", res.code, res.stdout, res.stderr)
	}
	path := filepath.Join(dir, "out", "trace.json")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := traceread.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	p := browse(t, catapult(t, path).URL)
	p.await("window.model || window.fault")
	var got seenTrace
	p.eval(`({warnings: window.fault ? [fault] : model.importWarnings.map(w => w.message),
		processes: model.getAllProcesses().sort((a, b) => a.sortIndex - b.sortIndex).map(p => ({name: p.name,
			tracks: Object.values(p.threads).sort((a, b) => a.sortIndex - b.sortIndex).map(t => ({name: t.name,
				slices: t.sliceGroup.length, top: t.sliceGroup.topLevelSlices.length}))})),
		arrows: model.flowEvents.map(f => [f.startSlice?.title ?? "", f.endSlice?.title ?? ""])})`, &got)
	if len(got.Warnings) > 0 || len(got.Processes) != len(want.Ranks) {
		t.Fatalf("%d processes, want %d; warnings %q", len(got.Processes), len(want.Ranks), got.Warnings)
	}
	for i, process := range got.Processes {
		rank := want.Ranks[i]
		if process.Name != rank.Name || len(process.Tracks) != len(rank.Tracks) {
			t.Errorf("rank %d: process %q with %d tracks, want %q with %d", i, process.Name, len(process.Tracks),
				rank.Name, len(rank.Tracks))
		}
		for _, track := range process.Tracks {
			all, top := rank.Tracks[track.Name], 0
			for _, s := range all {
				if s.Depth == 0 {
					top++
				}
			}
			if track.Slices != len(all) || track.Top != top || top == 0 {
				t.Errorf("rank %d, %s: %d slices, %d of which no other encloses; want %d and %d", i, track.Name,
					track.Slices, track.Top, len(all), top)
			}
		}
	}
	for _, a := range got.Arrows {
		if a != [2]string{"send", "receive"} {
			t.Errorf("an arrow from %q to %q", a[0], a[1])
		}
	}
	if len(got.Arrows) != len(want.Arrows) || len(want.Arrows) == 0 {
		t.Errorf("%d arrows, want %d", len(got.Arrows), len(want.Arrows))
	}
}
