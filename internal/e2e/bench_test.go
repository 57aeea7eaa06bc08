package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchRecord is the part of a record in bench.json that tests check.
type benchRecord struct {
	Scaling      string    `json:"scaling"`
	NX           int       `json:"nx"`
	NY           int       `json:"ny"`
	Ranks        int       `json:"ranks"`
	Sweeps       int       `json:"sweeps"`
	Depth        int       `json:"depth"`
	Seconds      []float64 `json:"seconds"`
	Serial       *float64  `json:"t_s"`
	Parallel     float64   `json:"t_p"`
	SpeedUp      *float64  `json:"speed_up"`
	Efficiency   *float64  `json:"efficiency"`
	GLUPS        float64   `json:"glups"`
	Traffic      float64   `json:"gb_s"`
	CopyRate     *float64  `json:"copy_gb_s"`
	CopyFraction *float64  `json:"copy_fraction"`
	FieldHash    string    `json:"field_hash"`
	Devices      []string  `json:"devices"`
	Kernel       string    `json:"kernel"`
	Threads      int       `json:"threads"`
	Transports   []struct {
		Rank      int    `json:"rank"`
		Neighbour int    `json:"neighbour"`
		Transport string `json:"transport"`
	} `json:"transports"`
}

// benchmark runs launcher bench, which must succeed. It returns the rows of the table, the records, and the rows of the
// CSV below its header.
func benchmark(t *testing.T, env []string, args ...string) (table []string, records []benchRecord, csv []string) {
	t.Helper()
	dir := t.TempDir()
	out := runWith(t, env, dir, "launcher", append([]string{"bench"}, args...)...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	if err := json.Unmarshal([]byte(readText(t, dir, "out", "bench.json")), &records); err != nil {
		t.Fatal(err)
	}
	csv = strings.Split(strings.TrimSpace(readText(t, dir, "out", "bench.csv")), "\n")[1:]
	if entries, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(entries) != 2 {
		t.Errorf("in output.dir: %v, %v; want bench.csv and bench.json alone", entries, err)
	}
	_, rows, ok := strings.Cut(out.stdout, " halos by\n")
	if !ok {
		t.Fatalf("no header in\n%s", out.stdout)
	}
	return strings.Split(strings.TrimSuffix(rows, "\n"), "\n"), records, csv
}

// Table, JSON and CSV have a row for each size and number of ranks, in that order, of what the ranks did. How the
// figures follow from that, and that the three agree, is proven without processes (internal/tools/scaling).
func TestBench(t *testing.T) {
	table, records, csv := benchmark(t, nil, append(
		set("solver.max_iterations=40", "device.threads=1", "device.kernel=portable"),
		"--sizes", "48,64", "--ranks", "4,1,2", "--repeat", "2")...)
	if len(table) != 6 || len(records) != 6 || len(csv) != 6 {
		t.Fatalf("%d rows, %d records, %d lines; want 6 of each", len(table), len(records), len(csv))
	}
	var sha string
	for i, r := range records {
		size, ranks, way, halos := []int{48, 64}[i/3], []int{1, 2, 4}[i%3], "shared memory", "shared"
		if ranks == 1 {
			sha, way, halos = r.FieldHash, "memory", "itself"
		}
		if r.Scaling != "strong" || r.NX != size || r.NY != size || r.Ranks != ranks || r.Sweeps != 40 ||
			len(r.Seconds) != 2 || *r.Serial != records[i/3*3].Parallel || !(*r.CopyRate > 0) ||
			len(r.Devices) != ranks || r.Devices[0] != "cpu portable, 1 thread" || r.Kernel != "portable" ||
			r.Threads != 1 || len(r.Transports) != ranks || r.FieldHash != sha || len(sha) != 64 {
			t.Errorf("record %d: %+v", i, r)
		}
		for k, p := range r.Transports {
			if p.Rank != k || p.Neighbour != (k+1)%ranks || p.Transport != way {
				t.Errorf("record %d: pair %+v, want %d-%d %s", i, p, k, (k+1)%ranks, way)
			}
		}
		cells := strings.Fields(table[i])
		if cells[0] != fmt.Sprintf("%dx%d", size, size) || cells[len(cells)-1] != halos ||
			!strings.Contains(csv[i], sha) {
			t.Errorf("row %d: %q, %s", i, cells, csv[i])
		}
	}
}

// With --weak, p ranks get p times the rows. Without a run of 1 rank there is no speed-up.
func TestBenchWeak(t *testing.T) {
	args := append(set("grid.nx=32", "grid.ny=40", "solver.max_iterations=30"), "--weak", "--repeat", "1")
	_, records, _ := benchmark(t, nil, append(args, "-np", "3")...)
	if len(records) != 3 {
		t.Fatalf("%d records, want 3", len(records))
	}
	for i, r := range records {
		if ranks, serial := i+1, records[0].Parallel; r.Scaling != "weak" || r.NX != 32 || r.NY != 40*ranks ||
			r.Ranks != ranks || *r.Serial != serial || *r.Efficiency != serial/r.Parallel {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if _, r, _ := benchmark(t, nil, append(args, "--ranks", "2")...); len(r) != 1 || r[0].Serial != nil ||
		r[0].SpeedUp != nil || r[0].Efficiency != nil {
		t.Errorf("without 1 rank: %+v", r)
	}
}

// On GPUs the roofline is the copy speed of the GPUs used. The fake driver takes 0.25 ms for any work, and its sums are
// zero, so a run ends after two sweeps.
func TestBenchOnGPUs(t *testing.T) {
	env := fakeCUDA(t, "-DFREE=(64ul<<20)", "-DTICK=250000")
	_, records, _ := benchmark(t, env, append(set("device.backend=cuda", "solver.max_iterations=2"), "--sizes", "64",
		"--ranks", "1,2,6", "--repeat", "1")...)
	if len(records) != 3 {
		t.Fatalf("%d records, want 3", len(records))
	}
	const one = 2 * 4 * (16 << 20) / 0.25e-3 / 1e9 // each try is four copies of a quarter of the free memory
	for i, r := range records {
		ranks, gpus := []int{1, 2, 6}[i], []float64{1, 2, 4}[i]
		if rate := *r.CopyRate; r.Ranks != ranks || math.Abs(rate/(gpus*one)-1) > 1e-12 ||
			*r.CopyFraction != r.Traffic/rate {
			t.Errorf("%d ranks: %v GB/s, %v of a copy's %v, want %v of %v", r.Ranks, r.Traffic, *r.CopyFraction, rate,
				r.Traffic/rate, gpus*one)
		}
		if want := fmt.Sprintf("cuda %d, Fake %d", (ranks-1)%4, 10+(ranks-1)%4); len(r.Devices) != ranks ||
			r.Devices[ranks-1] != want || r.Kernel != "" {
			t.Errorf("%d ranks: devices %q, kernel %q; want the last on %q", ranks, r.Devices, r.Kernel, want)
		}
	}
}

// A stall ends a run early, so its time is not the time of all sweeps. The first field stalls at a fixed point, the
// second one in two states that follow each other.
func TestBenchRefusesAFieldThatStalls(t *testing.T) {
	for want, keys := range map[string][]string{
		"16 x 16, 1 rank: the field stalled after 2 of 9 sweeps; set solver.max_iterations to 2 or less": {"grid.nx=16",
			"grid.ny=16", "problem.preset=dirichlet", "problem.top=0", "solver.max_iterations=9"},
		"33 x 40, 1 rank: the field stalled after 1641 of 9999 sweeps; ": {"grid.nx=33", "grid.ny=40",
			"solver.max_iterations=9999"},
	} {
		out := run(t, t.TempDir(), "launcher", append(set(keys...), "bench", "--ranks", "1")...)
		out.fails(t, 1, "launcher: "+want)
		out.fails(t, 1, "launcher: 0 of 1 row complete\n")
	}
}

// Ctrl-C during the second size keeps the row of the first one.
func TestInterruptedBenchKeepsCompleteRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startLive(t, dir, append(set("solver.max_iterations=2000"), "bench", "--ranks", "1", "--sizes", "64,1024",
		"--repeat", "20", "--name", "cut")...)
	l.waitFor(`^ +64x64 `)
	l.waitFor(`1024 x 1024, 1 rank: run 1 of 20: `)
	l.signal(os.Interrupt)
	l.ends(130, `launcher: 1 of 2 rows complete: out/cut.json, out/cut.csv\n`)
	if n := strings.Count(readText(t, dir, "out", "cut.json"), `"ranks": 1`); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	l.leavesNothing()
}
