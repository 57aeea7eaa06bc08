package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/observe/trace"
	"jacobi/internal/observe/trace/traceread"
)

// timesReport is the part of report.json with which traces agree.
type timesReport struct {
	RunID string `json:"run_id"`
	Ranks []struct {
		Compute    float64 `json:"compute_seconds"`
		HaloWait   float64 `json:"halo_wait_seconds"`
		NormWait   float64 `json:"norm_wait_seconds"`
		Transports map[string]struct {
			Neighbour int `json:"neighbour"`
			Traffic   struct {
				Exchanges int     `json:"exchanges"`
				Send      float64 `json:"send_seconds"`
				Wait      float64 `json:"wait_seconds"`
			} `json:"traffic"`
		} `json:"transports"`
	} `json:"ranks"`
	Checkpoints struct {
		Copies float64 `json:"copies_total_seconds"`
	} `json:"checkpoints"`
	Trace struct {
		Passes, Dropped int
		Error           string
	} `json:"trace"`
}

func readTimes(t *testing.T, out string) (r timesReport) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// traced runs the launcher with a trace, and returns the answer, the trace and the report's times.
func traced(t *testing.T, args ...string) (answer, traceread.Trace, timesReport) {
	t.Helper()
	return tracedWith(t, nil, args...)
}

// tracedWith is traced with additional environment variables.
func tracedWith(t *testing.T, env []string, args ...string) (answer, traceread.Trace, timesReport) {
	t.Helper()
	dir := t.TempDir()
	res := runWith(t, env, dir, "launcher", append(args, set("output.trace=trace.json")...)...)
	if res.code != 0 {
		t.Fatalf("exit code %d\n%s%s", res.code, res.stdout, res.stderr)
	}
	out := filepath.Join(dir, "out")
	history, err := os.ReadFile(filepath.Join(out, "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(out, "trace.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr, err := traceread.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	r := readReport(t, out)
	times := readTimes(t, out)
	if tr.About.RunID != times.RunID || tr.About.Passes != times.Trace.Passes ||
		tr.About.Dropped != times.Trace.Dropped || times.Trace.Error != "" {
		t.Errorf("the trace is of %+v, the report of run %s with %+v", tr.About, times.RunID, times.Trace)
	}
	return answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}, tr, times
}

// agree checks that the slices of each rank add up to the times of the report, to the nanosecond.
func agree(t *testing.T, tr traceread.Trace, r timesReport) {
	t.Helper()
	if len(tr.Ranks) != len(r.Ranks) {
		t.Fatalf("%d ranks in the trace, %d in the report", len(tr.Ranks), len(r.Ranks))
	}
	for rank, k := range r.Ranks {
		sums := tr.Ranks[rank].Sum()
		for _, c := range []struct {
			category string
			want     float64
		}{{"compute", k.Compute}, {"halo_wait", k.HaloWait}, {"norm_wait", k.NormWait}} {
			if got := sums[c.category].Seconds(); got != c.want || got <= 0 && len(r.Ranks) > 1 {
				t.Errorf("rank %d: %s of %.9f s in the trace, %.9f s in the report", rank, c.category, got, c.want)
			}
		}
	}
	if got := tr.Ranks[0].Sum()["save"].Seconds(); got != r.Checkpoints.Copies {
		t.Errorf("rank 0 copied states for %.9f s in the trace, %.9f s in the report", got, r.Checkpoints.Copies)
	}
}

// stepsOf returns the names of the slices of a track, each once, sorted.
func stepsOf(slicesOf []traceread.Slice) []string {
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
			args := append(set("grid.nx=128", "grid.ny=128", "solver.max_iterations=60", "halo.depth=4",
				"device.threads=1", "halo.transport="+transport), "-np", "4")
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
					if n != exchanges || n != l.Traffic.Exchanges || sent/1e9 != l.Traffic.Send ||
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
		{"multigrid", "solver.method=multigrid", "cycle", -1, set("solver.start=full", "solver.acceleration=cg",
			"solver.relative_tolerance=1e-4", "solver.tolerance=0"), []string{"stage", "interpolate", "norm",
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

// trace.passes, trace.from and trace.to bound what is recorded.
func TestTraceWindow(t *testing.T) {
	args := append(set("grid.nx=64", "grid.ny=64", "solver.max_iterations=80", "halo.depth=4"), "-np", "2")
	for _, c := range []struct {
		keys            []string
		passes, dropped int
		want            []int64 // first sweeps of the passes
	}{
		{[]string{"trace.passes=2"}, 20, 16, []int64{0, 4, 72, 76}},
		{[]string{"trace.from=9", "trace.to=21"}, 3, 0, []int64{12, 16, 20}},
		{[]string{"trace.from=40", "trace.passes=1"}, 10, 8, []int64{40, 76}},
	} {
		_, tr, _ := traced(t, append(args, set(c.keys...)...)...)
		for rank, k := range tr.Ranks {
			var first []int64
			for _, s := range k.Tracks["solver"] {
				if s.Name == "pass" {
					first = append(first, s.Args["first_sweep"])
				}
			}
			if !slices.Equal(first, c.want) || tr.About.Passes != c.passes || tr.About.Dropped != c.dropped {
				t.Errorf("%v: rank %d has passes from sweeps %v, %d of %d dropped; want %v", c.keys, rank, first,
					tr.About.Dropped, tr.About.Passes, c.want)
			}
		}
	}
}

// A trace that cannot be written is an error before the start if that is known then.
func TestTraceRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "out", "trace.json"), 0o777); err != nil {
		t.Fatal(err)
	}
	res := run(t, dir, "launcher", append(short, set("output.trace=trace.json")...)...)
	if want := `output.trace "trace.json": out/trace.json exists and is no regular file`; res.code == 0 ||
		!strings.Contains(res.stderr, want) {
		t.Errorf("exit code %d\n%s\nwant %s", res.code, res.stderr, want)
	}
}

// A disk that fills up meanwhile costs the trace alone, with a warning.
func TestTraceOnFullDisk(t *testing.T) {
	dir, out := smallDisk(t, "32m")
	// The other files leave no room that they had reserved.
	l := begin(t, dir, append(set("output.trace=trace.json", "output.picture=", "output.history="), "-np", "2")...)
	emptied(t, out, "trace.json")
	fill(t, out)
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if want := "trace.json is not written: "; code != 130 || !strings.Contains(output, want) ||
		!strings.Contains(output, "no space left on device") {
		t.Errorf("exit code %d\n%s\nwant 130 and %s", code, output, want)
	}
	l.leavesNothing()
	if _, err := os.Stat(filepath.Join(out, "field.npy")); err != nil {
		t.Error(err)
	}
	if r := readTimes(t, out); !strings.Contains(r.Trace.Error, "no space left on device") {
		t.Errorf("the report says %+v", r.Trace)
	}
	if _, err := os.Stat(filepath.Join(out, "trace.json")); !os.IsNotExist(err) {
		t.Errorf("trace.json: %v", err)
	}
}
