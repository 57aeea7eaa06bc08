package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
)

// traced runs the launcher with a trace, and returns the answer, the trace and the report's times.
func traced(t *testing.T, args ...string) (answer, viewedTrace, output.Report) {
	t.Helper()
	return tracedWith(t, nil, args...)
}

// tracedWith is traced with additional environment variables.
func tracedWith(t *testing.T, env []string, args ...string) (answer, viewedTrace, output.Report) {
	t.Helper()
	dir := t.TempDir()
	res := runWith(t, env, dir, "launcher", append(args, set("output.trace=trace.json")...)...)
	if res.code != 0 {
		t.Fatalf("exit code %d\n%s%s", res.code, res.stdout, res.stderr)
	}
	got, _ := answerIn(t, filepath.Join(dir, "out"))
	times := wholeReport(t, dir)
	if times.Trace.Error != "" {
		t.Fatalf("no trace: %s\n%s", times.Trace.Error, res.stderr)
	}
	tr := readTrace(t, filepath.Join(dir, "out", "trace.json"))
	if tr.About.RunID != times.RunID || tr.About.Passes != times.Trace.Passes ||
		tr.About.Dropped != times.Trace.Dropped {
		t.Errorf("the trace is of %+v, the report of run %s with %+v", tr.About, times.RunID, times.Trace)
	}
	return got, tr, times
}

func readTrace(t *testing.T, path string) viewedTrace {
	t.Helper()
	tr, err := parseTrace(strings.NewReader(readText(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// agree checks that the slices of each rank add up to the times of the report, to the nanosecond.
func agree(t *testing.T, tr viewedTrace, r output.Report) {
	t.Helper()
	if len(tr.Ranks) != len(r.Ranks) {
		t.Fatalf("%d ranks in the trace, %d in the report", len(tr.Ranks), len(r.Ranks))
	}
	for rank, k := range r.Ranks {
		for category, want := range map[string]float64{"compute": k.Compute, "halo_wait": *k.HaloWait,
			"norm_wait": k.NormWait} {
			if got := tr.Ranks[rank].Sum()[category].Seconds(); got != want || got <= 0 && len(r.Ranks) > 1 {
				t.Errorf("rank %d: %s of %.9f s in the trace, %.9f s in the report", rank, category, got, want)
			}
		}
	}
	if got := tr.Ranks[0].Sum()["save"].Seconds(); r.Checkpoints != nil && got != r.Checkpoints.Copies {
		t.Errorf("rank 0 copied states for %.9f s in the trace, %.9f s in the report", got, r.Checkpoints.Copies)
	}
}

// stepsOf returns the names of the slices of a track, each once, sorted.
func stepsOf(slicesOf []tracedSlice) []string {
	names := map[string]bool{}
	for _, s := range slicesOf {
		names[s.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// A trace of four ranks has what each of them did, to the nanosecond of the report's sums, and an arrow for every row
// block that a rank got from another one. With it the run has the same bits.
func TestTraceOfFourRanks(t *testing.T) {
	for _, transport := range []string{"p2p", "nats"} {
		t.Run(transport, func(t *testing.T) {
			args := onRanks(4, "grid.nx=128", "grid.ny=128", "solver.max_iterations=60", "halo.depth=4",
				"device.threads=1", "halo.transport="+transport)
			plain, _ := solve(t, args...)
			got, tr, r := traced(t, args...)
			if got != plain {
				t.Errorf("with a trace %+v, without %+v", got, plain)
			}
			agree(t, tr, r)
			if tr.About.Passes != 15 || tr.About.Dropped != 0 || len(tr.About.Clocks) != 1 {
				t.Fatalf("about %+v", tr.About)
			}
			same := trace.Reading{}
			if c := tr.About.Clocks[0]; !slices.Equal(c.Ranks, []int{0, 1, 2, 3}) || c.Before != same ||
				c.After != same || c.Drifts {
				t.Errorf("clock %+v", c)
			}
			const exchanges = 14 // before all passes but the first
			for rank, k := range tr.Ranks {
				if want := fmt.Sprintf("rank %d on ", rank); !strings.HasPrefix(k.Name, want) ||
					!strings.Contains(k.Name, ": cpu ") {
					t.Errorf("process %q, want %s and a device", k.Name, want)
				}
				phases := []string{"edges", "gather reports", "hash", "interior", "pass", "results", "send halos",
					"send sums", "sums", "wait for halos", "wait for norm", "write rows"}
				if rank == 0 {
					phases = append(phases, "field", "history", "picture")
				}
				slices.Sort(phases)
				if names := stepsOf(k.Tracks["solver"]); !slices.Equal(names, phases) {
					t.Errorf("rank %d: %q, want %q", rank, names, phases)
				}
				for side, l := range r.Ranks[rank].Transports {
					var sent, waited float64
					n := 0
					for _, s := range k.Tracks[fmt.Sprintf("link to rank %d (%s)", l.Neighbour, side)] {
						switch s.Name {
						case "room", "send":
							sent += float64(s.Took)
						case "receive":
							waited += float64(s.Took)
							n++
						}
					}
					if n != exchanges || uint64(n) != l.Traffic.Exchanges || sent/1e9 != l.Traffic.Send ||
						waited/1e9 != l.Traffic.Wait {
						t.Errorf("rank %d, %s: %d exchanges, %.9f s and %.9f s in the trace; %+v in the report", rank,
							side, n, sent/1e9, waited/1e9, l.Traffic)
					}
				}
			}
			if len(tr.Arrows) != 2*4*exchanges {
				t.Errorf("%d arrows, want %d", len(tr.Arrows), 2*4*exchanges)
			}
			for _, a := range tr.Arrows {
				step := (a.ToRank - a.FromRank + 4) % 4
				from, to := fmt.Sprintf("link to rank %d (bottom)", a.ToRank), fmt.Sprintf("link to rank %d (top)",
					a.FromRank)
				if step == 3 {
					from, to = strings.Replace(from, "bottom", "top", 1), strings.Replace(to, "top", "bottom", 1)
				}
				if step == 2 || a.FromTrack != from || a.ToTrack != to || a.From.Name != "send" ||
					a.To.Name != "receive" || a.From.Args["exchange"] != a.To.Args["exchange"] ||
					a.To.Start+a.To.Took <= a.From.Start {
					t.Errorf("arrow %+v", a)
				}
			}
		})
	}
}

// The other methods leave traces that add up, too: levels, cycles and stages of multigrid, and checkpoints.
func TestTraceOfMethods(t *testing.T) {
	for _, c := range []struct {
		name, solver, pass string
		passes             int
		args, also         []string
	}{
		{"jacobi", "solver.method=jacobi", "pass", 12, set("checkpoint.every=40 sweeps", "checkpoint.dir=saved",
			"halo.depth=4", "solver.max_iterations=48"), []string{"copy state"}},
		{"multigrid", "solver.method=multigrid", "cycle", -1, set(
			"problem.coefficient=mod(floor(ix/3)+floor(iy/3),2)<1?100:1",
			"solver.relative_tolerance=1e-4", "solver.tolerance=0"), []string{"norm",
			"conjugate gradients", "down, level 0", "up, level 0", "halos, level 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append(set("grid.nx=128", "grid.ny=128", "grid.dtype=float64", "device.threads=1", c.solver),
				append(c.args, "-np", "2")...)
			got, tr, r := traced(t, args...)
			agree(t, tr, r)
			for rank, k := range tr.Ranks {
				names := stepsOf(k.Tracks["solver"])
				for _, name := range c.also {
					if !slices.Contains(names, name) {
						t.Errorf("rank %d: %q lacks %q", rank, names, name)
					}
				}
				passes := 0
				for _, s := range k.Tracks["solver"] {
					if s.Name == c.pass {
						passes++
					}
				}
				if passes != tr.About.Passes || passes == 0 || c.passes > 0 && passes != c.passes {
					t.Errorf("rank %d: %d of %d passes, %d wanted", rank, passes, tr.About.Passes, c.passes)
				}
				if saved := k.Tracks["checkpoints"]; (len(saved) > 0) != (c.name == "jacobi") {
					t.Errorf("rank %d: checkpoints %+v", rank, saved)
				}
			}
			if plain, _ := solve(t, args...); got != plain {
				t.Errorf("with a trace %+v, without %+v", got, plain)
			}
		})
	}
}

// A disk that fills up meanwhile costs the trace alone, with a warning.
func TestTraceOnFullDisk(t *testing.T) {
	dir, out := smallDisk(t, "32m")
	// The other files leave no room that they had reserved.
	l := begin(t, dir, onRanks(2, "output.trace=trace.json", "output.picture=", "output.history=")...)
	emptied(t, out, "trace.json")
	fill(t, out)
	l.signal(os.Interrupt)
	l.ends(130, "trace.json is not written: .*no space left on device")
	l.leavesNothing()
	if _, err := os.Stat(filepath.Join(out, "field.npy")); err != nil {
		t.Error(err)
	}
	if r := wholeReport(t, dir); !strings.Contains(r.Trace.Error, "no space left on device") {
		t.Errorf("the report says %+v", r.Trace)
	}
	if _, err := os.Stat(filepath.Join(out, "trace.json")); !os.IsNotExist(err) {
		t.Errorf("trace.json: %v", err)
	}
}

// gpuTracks are the tracks of a rank's GPU.
var gpuTracks = []string{"GPU, stream 0", "GPU, stream 1"}

// within checks that the work of GPUs that do all work when they are given it lies within the slice of the host that
// gives it, as far as the clocks are known, and that the work in one stream does not overlap. It returns the number of
// slices of each name, over both streams of a rank.
func within(t *testing.T, tr viewedTrace, rank int, hosts map[string][]string) map[string]int {
	t.Helper()
	i := slices.IndexFunc(tr.About.GPUs, func(g trace.GPUClock) bool { return g.Rank == rank })
	if i < 0 {
		t.Fatalf("no clock of the GPU of rank %d: %+v", rank, tr.About.GPUs)
	}
	bound := time.Duration(tr.About.GPUs[i].Error)
	counts, k := map[string]int{}, tr.Ranks[rank]
	for _, track := range gpuTracks {
		var end time.Duration
		for _, s := range k.Tracks[track] {
			counts[s.Name]++
			if s.Start < end || s.Depth != 0 {
				t.Errorf("rank %d, %s: %+v begins within the slice before it", rank, track, s)
			}
			end = s.Start + s.Took
			if !slices.ContainsFunc(k.Tracks["solver"], func(h tracedSlice) bool {
				return slices.Contains(hosts[s.Name], h.Name) && h.Args["pass"] == s.Args["pass"] &&
					s.Start >= h.Start-bound && end <= h.Start+h.Took+bound
			}) {
				t.Errorf("rank %d, %s: %+v is within none of %q, clock known to %v", rank, track, s,
					hosts[s.Name], bound)
			}
		}
	}
	return counts
}

// The work of GPUs has tracks of its own, whose clock is that of the host. These GPUs do everything at once.
func TestTraceOfGPUs(t *testing.T) {
	env := fakeCUDA(t, "-DNORM=1")
	keys := set("grid.nx=256", "grid.ny=256", "device.backend=cuda", "solver.tolerance=0",
		"halo.depth=4", "solver.max_iterations=60", "trace.to=60")
	// There are 15 passes. The last one sweeps the whole stripe at once. The copies for files come after sweep 60.
	for _, c := range []struct {
		ranks string
		keys  []string
		want  map[string]int
	}{
		{"1", nil, map[string]int{"sweep": 15, "sums to host": 15}},
		{"2", nil, map[string]int{"sweep": 1, "sweep edges": 28, "sweep interior": 14, "sums to host": 15,
			"rows to host": 28, "rows from host": 28}},
		{"2", set("trace.passes=2"), map[string]int{"sweep": 1, "sweep edges": 6, "sweep interior": 3,
			"sums to host": 4, "rows to host": 6, "rows from host": 6}},
		{"1", set("trace.from=8", "trace.to=16"), map[string]int{"sweep": 2, "sums to host": 2}},
	} {
		got, tr, r := tracedWith(t, env, append(append(keys, c.keys...), "-np", c.ranks)...)
		if len(c.keys) == 0 && c.ranks != "1" {
			agree(t, tr, r)
		}
		if len(tr.About.GPUs) != len(tr.Ranks) {
			t.Errorf("clocks of GPUs %+v", tr.About.GPUs)
		}
		for rank := range tr.Ranks {
			counts := within(t, tr, rank, map[string][]string{
				"sweep": {"edges", "interior"}, "sweep edges": {"edges"}, "sweep interior": {"interior"},
				"sums to host": {"interior"}, "rows to host": {"send halos"},
				"rows from host": {"wait for halos"},
			})
			if !maps.Equal(counts, c.want) {
				t.Errorf("%s ranks, %q: rank %d has %v, want %v", c.ranks, c.keys, rank, counts, c.want)
			}
		}
		if plain, _ := solveWith(t, env, append(keys, "-np", c.ranks)...); got.history != plain.history {
			t.Errorf("%s ranks: with a trace %+v, without %+v", c.ranks, got, plain)
		}
	}
}

// traceOfEmulatedMultigrid checks that multigrid has a track of the GPU, too. The work follows the host's launches in
// their order, each piece at its own time.
func traceOfEmulatedMultigrid(t *testing.T, env []string) {
	t.Helper()
	args := onRanks(2, cycling("grid.nx=130", "grid.ny=81", "device.backend=cuda", "solver.tolerance=0",
		"solver.relative_tolerance=1e-1")...)
	got, tr, r := tracedWith(t, env, args...)
	if plain, _ := solveWith(t, env, args...); got != plain {
		t.Errorf("with a trace %+v, without %+v", got, plain)
	}
	if len(tr.About.GPUs) != len(tr.Ranks) || len(r.Ranks) != len(tr.Ranks) {
		t.Fatalf("clocks of GPUs %+v of %d ranks", tr.About.GPUs, len(tr.Ranks))
	}
	for rank, k := range tr.Ranks {
		launches := map[string][]tracedSlice{}
		for _, s := range k.Tracks["solver"] {
			launches[s.Name] = append(launches[s.Name], s)
		}
		work, end := map[string]int{}, time.Duration(0)
		for _, s := range k.Tracks[gpuTracks[0]] {
			if s.Start < end || s.Depth != 0 {
				t.Errorf("rank %d: %+v begins within the slice before it", rank, s)
			}
			end = s.Start + s.Took
			n, from := work[s.Name], launches[s.Name]
			work[s.Name]++
			if n < len(from) && s.Start < from[n].Start-time.Duration(tr.About.GPUs[rank].Error) {
				t.Errorf("rank %d: %+v begins before the host's %+v", rank, s, from[n])
			}
		}
		for _, name := range []string{"down, level 0", "up, level 0"} {
			if work[name] != len(launches[name]) || work[name] == 0 {
				t.Errorf("rank %d: %d of %q on the GPU, %d on the host", rank, work[name], name, len(launches[name]))
			}
		}
		if work["rows to neighbour"] == 0 || work["rows to neighbour"] != work["await rows"] {
			t.Errorf("rank %d: %v", rank, work)
		}
	}
}

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
	mustRun(t, dir, "launcher", onRanks(4, "grid.nx=128", "grid.ny=128", "solver.max_iterations=60", "halo.depth=4",
		"device.threads=1", "output.trace=trace.json", "checkpoint.every=20 sweeps", "checkpoint.dir=saved")...)
	path := filepath.Join(dir, "out", "trace.json")
	want := readTrace(t, path)
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
