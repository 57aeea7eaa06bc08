package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/base/style"
	"jacobi/internal/compute/problem"
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s", name, got, want)
	}
}

func testReport(ranks int) Report {
	norm := 0.039791081599999999
	m := solver.Mesh{NX: 1024, NY: 1024, DType: solver.Float32, Walls: solver.WrapRows(true)}
	setup := problem.Setup{Left: "0", Right: "neumann(1)", Top: "periodic", Bottom: "periodic", Initial: "0",
		Source: "sin(x)", Fixed: "plates.png", FixedPoints: 1234, Coefficient: "1",
		Screening: "4", Width: 2, Height: 1, SpacingX: 0.002,
		SpacingY: 0.001}
	r := Report{
		Name: "first light", RunID: "r7", Version: "v0.1.0", Config: json.RawMessage(`{"grid":{"nx":1024}}`),
		Problem: "gtc2019",
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Ended: time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC),
		Mesh: NewMeshReport(m), Setup: &setup, Depth: 8, Method: "jacobi", Sweeps: 1000, MaxIterations: 1000,
		Tolerance:  1e-8,
		StopReason: solver.MaxIterations, Verdict: configs.Done, Norm: &norm,
		Times: TimesReport{Setup: 0.25, Sweeps: 0.5, Output: 0.125}, GLUPS: GLUPS(m, 1000, 0.5),
		FieldHash: "4f2a", Dir: "out", Files: []FileReport{{"field.npy", 128, "ab12"}, {Name: "report.json"}},
	}
	for i := range ranks {
		transport := "shm"
		if i == ranks-1 {
			transport = "nats"
		}
		r.Ranks = append(r.Ranks, RankReport{
			Rank: i, Node: fmt.Sprint("id", i/2), Host: fmt.Sprint("node", i/2), PID: 100 + i,
			Device: "cpu avx512, 1 thread",
			Stripe: [2]int{max(1, i*8), i*8 + 8}, MemoryBytes: 3 << 20, RSSBytes: int64(17+i) << 20,
			Transports: map[string]LinkReport{
				"top":    {Neighbour: (i + ranks - 1) % ranks, Transport: "shm", Why: "same node"},
				"bottom": {Neighbour: (i + 1) % ranks, Transport: transport, Why: "other node"},
			},
			Compute: 0.375, HaloWait: new(0.0625), NormWait: 0.03125,
		})
	}
	return r
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name   string
		ranks  int
		change func(*Report)
	}{
		{"max_iterations", 3, func(r *Report) {
			r.Accuracy = &AccuracyReport{Error: new(0.5)}
			r.Residual = NewResidual(*r.Norm, 0, 2.5e6)
		}},
		{"converged", 2, func(r *Report) {
			r.Name, r.StopReason, r.Converged, r.Sweeps = "", solver.Converged, true, 731
			r.Tolerance, r.Decisive = 0.0397, &DecisiveReport{Sweep: 729, Norm: 0.03969}
			r.Accuracy = &AccuracyReport{Error: new(0.012)}
		}},
		{"rounding", 1, func(r *Report) {
			r.StopReason, r.Converged, r.Sweeps = solver.Converged, true, 126339
			r.Decisive = &DecisiveReport{Sweep: 126337, Norm: 9.942729857e-09}
			r.Accuracy = &AccuracyReport{Error: new(1e-4), Rounding: true}
		}},
		{"stalled", 1, func(r *Report) {
			*r.Norm, r.StopReason, r.Sweeps, r.Decisive = 0, solver.Stalled, 9728, &DecisiveReport{Sweep: 9726}
		}},
		{"cycle", 1, func(r *Report) {
			*r.Norm, r.StopReason, r.Sweeps = 1.5e-8, solver.Stalled, 4195
			r.Decisive = &DecisiveReport{Sweep: 4193, Norm: 1.625e-8}
		}},
		{"interrupted", 1, func(r *Report) {
			r.StopReason, r.Sweeps, r.Norm, r.Ranks[0].Transports, r.Files, r.FieldHash = solver.Interrupted, 0, nil,
				nil, nil, ""
			r.Setup = nil
		}},
		{"gpus", 2, func(r *Report) {
			energy, mean, flux, charge := 1.25, 0.5, -1.0/3, 12.5
			r.Results = &results.Results{Energy: &energy, Mean: &mean,
				Min: results.Point{Value: 0}, Max: results.Point{Value: 1, X: 0.25, Y: 0.125},
				Flux: map[string]*float64{"left": &flux, "right": nil},
				Balance: results.Balance{In: &charge, Out: &energy, Source: &flux, Screening: &mean, Regions: &flux,
					Sides: map[string]results.Through{"left": {In: &mean, Out: &energy}}},
				Regions: slices.Repeat([]results.Region{{Points: 1234, Min: 1, Max: 1, Flux: &charge}}, 10)}
			r.Results.Regions[1] = results.Region{Points: 1, Min: -1, Max: 2, Flux: &flux}
			r.Results.Regions[2].Points = 0
			for i := range r.Ranks {
				k := &r.Ranks[i]
				k.Device, k.GPU = fmt.Sprintf("cuda %d, NVIDIA H200", i), &GPUReport{Index: i}
			}
			r.Ranks[0].HaloWait = nil
		}},
		{"links", 4, func(r *Report) {
			packed := &halo.NATSStats{Plain: 60 << 20, Packed: 15 << 20}
			seconds := func(each float64) float64 { return 63 * each }
			traffic := &TrafficReport{Exchanges: 63, Bytes: 63 << 21, LinkTime: &LinkTime{CopyOut: seconds(1e-4),
				Send: seconds(2e-4), Wait: seconds(5e-3), CopyIn: seconds(3e-4)}}
			for i, l := range []LinkReport{
				{Neighbour: 1, Transport: "nats", Why: "different nodes", Traffic: traffic, NATS: packed},
				{Neighbour: 2, Transport: "shared memory", Traffic: traffic},
				{Neighbour: 3, Transport: "direct", Direct: &halo.DirectStats{Sockets: 1, Refused: 1, Plain: 63 << 19,
					Packed: 63 << 18}, Traffic: traffic},
				{Neighbour: 0, Transport: "nats", Why: "direct failed: timeout", Traffic: &TrafficReport{Exchanges: 63,
					Bytes: 63 << 21}},
			} {
				r.Ranks[i].Transports = map[string]LinkReport{"bottom": l}
				r.Ranks[i].HaloWait = new(float64(i) * r.Times.Sweeps / 4)
			}
			r.Ranks[1].Transports["top"] = LinkReport{Neighbour: 0, Transport: "nats", Traffic: traffic}
			r.Ranks[0].HaloWait = new(r.Times.Sweeps / 3)
			r.Ranks[3].RefusedMessages = 1234
		}},
		{"gain", 2, func(r *Report) {
			r.Ranks[1].Transports = map[string]LinkReport{"top": {Neighbour: 0, Transport: "nats", Why: "two nodes"}}
			r.Ranks[1].HaloWait = new(r.Times.Sweeps / 2)
		}},
		{"many", 18, func(*Report) {}},
		{"multigrid", 2, func(r *Report) {
			r.Method, r.Sweeps, r.RelativeTolerance, r.StopReason = "multigrid", 7, 1e-9, solver.Converged
			r.Decisive = &DecisiveReport{Sweep: 7, Norm: *r.Norm}
			r.Accuracy = &AccuracyReport{Error: new(2e-9)}
			r.Residual = NewResidual(*r.Norm, 4, 2.5e6)
		}},
		{"uncertain", 1, func(r *Report) {
			r.Method, r.Sweeps, r.RelativeTolerance, r.StopReason = "multigrid", 48, 1e-8, solver.Converged
			r.Decisive = &DecisiveReport{Sweep: 48, Norm: *r.Norm}
			r.Accuracy = &AccuracyReport{Error: new(1e-3), Uncertain: true}
		}},
		{"unknown_error", 1, func(r *Report) {
			r.Accuracy = &AccuracyReport{Why: "points have coefficients of their own"}
		}},
		{"floor", 1, func(r *Report) {
			r.Method, r.Sweeps, r.Tolerance, r.RelativeTolerance = "multigrid", 11, 0, 1e-8
			r.StopReason, r.Verdict = solver.Stalled, configs.Met
			r.Decisive = &DecisiveReport{Sweep: 11, Norm: *r.Norm}
			r.Accuracy = &AccuracyReport{Error: new(1e-4)}
		}},
		{"not_written", 1, func(r *Report) {
			r.Files = r.Files[1:]
			r.Failed = []FileFault{{"field.npy", "rank 2 on b: no space left on device"}}
		}},
		{"series", 1, func(r *Report) {
			r.Files[0] = FileReport{Name: configs.Stdout}
			r.Series = &SeriesReport{Every: 100, Files: "field-*.vti", Written: 11, Sweeps: 1000, Index: "field.pvd"}
			r.Probes = &ProbesReport{Every: 50, Points: 3, Samples: 21}
		}},
		{"series_not_written", 1, func(r *Report) {
			r.Series = &SeriesReport{Every: 100, Files: "field-*.npy", Failed: 11, Error: "no space left on device"}
			r.Probes = &ProbesReport{Every: 50, Points: 3, Error: "no space left on device"}
		}},
		{"resumed", 2, func(r *Report) {
			r.ResumedAfter = 400
			r.Checkpoints = &CheckpointReport{Place: "checkpoints", Written: 5, Failed: 1, Sweeps: 900, Bytes: 3 << 20,
				Write: 0.25, Copies: 0.0625}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testReport(c.ranks)
			c.change(&r)
			var b bytes.Buffer
			must(t, Summary(&b, r, false))
			golden(t, "summary_"+c.name+".txt", b.Bytes())
		})
	}
}

// A run without a tolerance has done what was asked of it.
func TestResultWithoutTolerance(t *testing.T) {
	r := testReport(1)
	r.Tolerance = 0
	if got := result(r); got != "done: 1,000 sweeps, as asked" {
		t.Error(got)
	}
}

// The summary names nine probes, and of ten the first eight and that there are two more.
func TestProbesInSummary(t *testing.T) {
	r := testReport(1)
	r.Probed = map[string][]*float64{}
	for i := range 10 {
		r.Probed[string(rune('A'+i))] = []*float64{new(float64(i))}
	}
	eight := []string{"A 0", "B 1", "C 2", "D 3", "E 4", "F 5", "G 6", "H 7"}
	if got, want := r.probes(), append(eight, "and 2 more, which are in the report"); !slices.Equal(got, want) {
		t.Errorf("ten: got %q\nwant %q", got, want)
	}
	delete(r.Probed, "J")
	if got, want := r.probes(), append(eight, "I 8"); !slices.Equal(got, want) {
		t.Errorf("nine: got %q\nwant %q", got, want)
	}
}

// On a terminal the summary has what matters, and no line is wider than it.
func TestShortSummary(t *testing.T) {
	r := testReport(3)
	r.Accuracy = &AccuracyReport{Error: new(2e-9)}
	r.Residual = NewResidual(*r.Norm, 4, 2.5e6)
	text, err := summary(r, style.Style{Width: 80}, false)
	must(t, err)
	golden(t, "summary_short.txt", []byte(text))
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	r := testReport(2)
	r.Decisive = &DecisiveReport{Sweep: 998, Norm: 0.0078125}
	r.Accuracy = &AccuracyReport{Error: new(0.5)}
	p, err := createLocal(dir, filepath.Join(dir, "report.json"), 1<<20, false)
	must(t, err)
	must(t, WriteReport(p, r))
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	must(t, err)
	golden(t, "report.json", b)
	var back Report
	must(t, json.Unmarshal(b, &back))
	var compact bytes.Buffer
	must(t, json.Compact(&compact, back.Config))
	back.Config = compact.Bytes()
	if !reflect.DeepEqual(back, r) {
		t.Errorf("read back\n%+v\nwant\n%+v", back, r)
	}
}

func TestReportThatIsNoJSONIsNotWritten(t *testing.T) {
	r := testReport(1)
	r.Tolerance = math.NaN()
	if err := WriteReport(nil, r); err == nil {
		t.Error("a NaN was written")
	}
}

func TestGLUPS(t *testing.T) {
	m := solver.Mesh{NX: 100000, NY: 100000}
	if got := GLUPS(m, 10, 4); got != 25 {
		t.Errorf("%v GLUP/s, want 25", got)
	}
	if got := GLUPS(m, 0, 0); got != 0 {
		t.Errorf("%v GLUP/s in no time", got)
	}
}

// The summary of a run that missed its tolerance ends with what to change in such a case.
func TestRemedy(t *testing.T) {
	norm := 0.0123
	for _, c := range []struct {
		name          string
		method, dtype string
		reason        solver.StopReason
		accuracy      *AccuracyReport
		want          string
	}{
		{"sweeps", configs.Jacobi, "float64", solver.MaxIterations, nil, "The tolerance was not met: raise " +
			"solver.max_iterations above 50; set solver.method=multigrid, which takes a few cycles; or set " +
			"solver.tolerance=0.013, which this run met."},
		{"sweeps in float32", configs.Jacobi, "float32", solver.MaxIterations, nil, "The tolerance was not met: " +
			"raise solver.max_iterations above 50; set grid.dtype=float64 and solver.method=multigrid, which takes " +
			"a few cycles; or set solver.tolerance=0.013, which this run met."},
		{"sweeps in float32 that cannot meet it", configs.Jacobi, "float32", solver.MaxIterations,
			&AccuracyReport{Rounding: true}, "The tolerance was not met: set grid.dtype=float64 and solver.method=" +
				"multigrid, which takes a few cycles; or set solver.tolerance=0.013, which this run met."},
		{"rounding in float32", configs.Jacobi, "float32", solver.Stalled, nil, "The tolerance was not met: set " +
			"grid.dtype=float64; or set solver.tolerance=0.013, which this run met."},
		{"cycles", configs.Multigrid, "float64", solver.MaxIterations, nil, "The tolerance was not met: raise " +
			"solver.max_iterations above 50; or set solver.tolerance=0.013, which this run met."},
		{"sweeps in float64 that cannot meet it", configs.Jacobi, "float64", solver.MaxIterations,
			&AccuracyReport{Rounding: true},
			"The tolerance was not met: set solver.tolerance=0.013, which this run met."},
		{"rounding in float64", configs.Multigrid, "float64", solver.Stalled, nil, "The tolerance was not met: set " +
			"solver.tolerance=0.013, which this run met."},
		{"slow cycles", configs.Multigrid, "float64", solver.Stagnated, nil,
			"The tolerance was not met: take a finer mesh, on which channels and gaps are several points wide, or a " +
				"smaller contrast of coefficients."},
		{"a field that is far off", configs.Multigrid, "float64", solver.MaxIterations,
			&AccuracyReport{Error: new(0.6)}, "The tolerance was not met: raise solver.max_iterations above 50."},
	} {
		r := Report{Verdict: configs.Missed, Method: c.method, StopReason: c.reason, MaxIterations: 50, Norm: &norm,
			Tolerance: 1e-3, Accuracy: c.accuracy,
			Results: &results.Results{Max: results.Point{Value: 1}}}
		r.Mesh.DType = c.dtype
		if got := r.Remedy(); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		r.Norm = new(0.0)
		const want = "The tolerance was not met: set a larger one, or take a problem.initial that is " +
			"nearer to the solution, as norms below it count as 0 beside values of this size."
		if got := r.Remedy(); got != want {
			t.Errorf("%s, a norm of 0: %s", c.name, got)
		}
		r.Verdict = configs.Done
		if got := r.Remedy(); got != "" {
			t.Errorf("%s, with sweeps that were asked for: %s", c.name, got)
		}
	}
}

// A tolerance that is rounded for a message is not below the norm.
func TestRoundUp(t *testing.T) {
	for norm, want := range map[float64]string{0.0123: "0.013", 0.012: "0.012", 9.96e-9: "1e-08", 2.04e-300: "2.1e-300",
		1234.5: "1300", 9.9e-5: "9.9e-05"} {
		got := roundUp(norm)
		back, err := strconv.ParseFloat(got, 64)
		if got != want || err != nil || back < norm {
			t.Errorf("%g: %s, want %s", norm, got, want)
		}
	}
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	at := hold(t, outputs(dir))
	h, err := CreateHistory(at, "history.csv", 1000, solver.Cadence{})
	must(t, err)
	must(t, h.Add(22.626005, 0.1, 1.0/3))
	must(t, h.Add(100, 1e-8, 123456789012345680000, math.SmallestNonzeroFloat64, 0))
	if _, err := os.Stat(filepath.Join(dir, "history.csv")); !os.IsNotExist(err) {
		t.Errorf("the history is there before its end: %v", err)
	}
	done, err := h.Finish()
	must(t, errors.Join(err, at.Commit([]string{"history.csv"})))
	release(t, at)
	wantFiles(t, dir, "history.csv")
	got, err := os.ReadFile(filepath.Join(dir, "history.csv"))
	must(t, err)
	const want = `iteration,l2_norm
0,22.626004999999999
1,0.10000000000000001
2,0.33333333333333331
3,100
4,1e-08
5,1.2345678901234568e+20
6,4.9406564584124654e-324
7,0
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if done != fileOf("history.csv", got) {
		t.Errorf("%+v, want %+v", done, fileOf("history.csv", got))
	}
}

// A history loses nothing to a disk that is full for some time.
func TestHistoryOutlastsAFullDisk(t *testing.T) {
	dir := t.TempDir()
	at := hold(t, outputs(dir))
	defer release(t, at)
	h, err := CreateHistory(at, "history.csv", 0, solver.Cadence{})
	must(t, err)
	disk := &filling{h.f, 100}
	h.f = disk
	want := historyHeader
	for i := range 20000 { // several chunks
		must(t, h.Add(0.5))
		want += fmt.Sprintf("%d,0.5\n", i)
	}
	if _, err := h.Finish(); !IsFull(err) {
		t.Fatalf("%v, want a full disk", err)
	}
	disk.room = 1 << 20
	done, err := h.Finish()
	if err != nil || done != fileOf("history.csv", []byte(want)) {
		t.Errorf("%+v, %v; want %+v", done, err, fileOf("history.csv", []byte(want)))
	}
	if got, err := os.ReadFile(at.path("history.csv")); err != nil || string(got) != want {
		t.Errorf("%d bytes, want %d: %v", len(got), len(want), err)
	}
}
