package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	FieldSHA256  string    `json:"field_sha256"`
	Devices      []string  `json:"devices"`
	Kernel       string    `json:"kernel"`
	Threads      int       `json:"threads"`
	Transports   []struct {
		Rank      int    `json:"rank"`
		Neighbour int    `json:"neighbour"`
		Transport string `json:"transport"`
	} `json:"transports"`
}

// benchmark runs launcher bench, which must succeed. It returns the rows of the table, the records, and the lines of
// the CSV by column.
func benchmark(t *testing.T, env []string, args ...string) (table []string, records []benchRecord,
	lines []map[string]string) {
	t.Helper()
	dir := t.TempDir()
	out := runWith(t, env, dir, "launcher", append([]string{"bench"}, args...)...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out", "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &records); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	f, err := os.Open(filepath.Join(dir, "out", "bench.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cells, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range cells[1:] {
		named := map[string]string{}
		for i, name := range cells[0] {
			named[name] = line[i]
		}
		lines = append(lines, named)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	if err != nil || len(entries) != 2 {
		t.Errorf("in output.dir: %v, %v; want bench.csv and bench.json alone", entries, err)
	}
	head, rows, ok := strings.Cut(out.stdout, "halos by\n")
	if !ok {
		t.Fatalf("no header in\n%s", out.stdout)
	}
	const columns = "      nx x ny ranks depth       T_s       T_p speed-up effic.    GLUP/s     GB/s of copy  "
	if !strings.HasSuffix(head, "\n"+columns) {
		t.Errorf("the header is not %q:\n%s", columns, head)
	}
	return strings.Split(strings.TrimSuffix(rows, "\n"), "\n"), records, lines
}

// number formats a number as the CSV does; "" stands for no number.
func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// Table, JSON and CSV have a row for each size and number of ranks, in that order, and agree.
func TestBench(t *testing.T) {
	table, records, lines := benchmark(t, nil, append(
		set("solver.max_iterations=40", "device.threads=1", "device.kernel=portable"),
		"--sizes", "48,64", "--ranks", "4,1,2", "--repeat", "2")...)
	if len(table) != 6 || len(records) != 6 || len(lines) != 6 {
		t.Fatalf("%d rows, %d records, %d lines; want 6 of each", len(table), len(records), len(lines))
	}
	var sha string
	for i, r := range records {
		size, ranks := []int{48, 64}[i/3], []int{1, 2, 4}[i%3]
		serial := records[i/3*3].Parallel
		if r.Scaling != "strong" || r.NX != size || r.NY != size || r.Ranks != ranks || r.Sweeps != 40 ||
			len(r.Seconds) != 2 ||
			r.Parallel != slices.Min(r.Seconds) || *r.Serial != serial || *r.SpeedUp != serial/r.Parallel ||
			*r.Efficiency != serial/(float64(ranks)*r.Parallel) {
			t.Errorf("record %d: %+v", i, r)
		}
		if ranks == 1 && (*r.Efficiency != 1 || *r.SpeedUp != 1) {
			t.Errorf("record %d: 1 rank has speed-up %v, efficiency %v", i, *r.SpeedUp, *r.Efficiency)
		}
		if r.Traffic != 8*r.GLUPS || !(*r.CopyRate > 0) || *r.CopyFraction != r.Traffic / *r.CopyRate {
			t.Errorf("record %d: %v GLUP/s, %v GB/s, copy %v GB/s, fraction %v", i, r.GLUPS, r.Traffic, *r.CopyRate,
				*r.CopyFraction)
		}
		if len(r.Devices) != ranks || r.Devices[0] != "cpu portable, 1 thread" || r.Kernel != "portable" ||
			r.Threads != 1 || len(r.Transports) != ranks {
			t.Errorf("record %d: %+v", i, r)
		}
		for k, p := range r.Transports {
			if want := map[bool]string{true: "memory", false: "shared memory"}[ranks == 1]; p.Rank != k ||
				p.Neighbour != (k+1)%ranks || p.Transport != want {
				t.Errorf("record %d: pair %+v, want %d-%d %s", i, p, k, (k+1)%ranks, want)
			}
		}
		if ranks == 1 {
			sha = r.FieldSHA256
		}
		if r.FieldSHA256 != sha || len(sha) != 64 {
			t.Errorf("record %d: field %s, that of 1 rank is %s", i, r.FieldSHA256, sha)
		}
		line := lines[i]
		for name, want := range map[string]string{
			"scaling": r.Scaling, "nx": strconv.Itoa(r.NX), "ny": strconv.Itoa(r.NY), "ranks": strconv.Itoa(r.Ranks),
			"sweeps": "40", "dtype": "float32",
			"depth": strconv.Itoa(r.Depth), "seconds": number(&r.Seconds[0]) + "; " + number(&r.Seconds[1]),
			"t_s": number(r.Serial), "t_p": number(&r.Parallel),
			"speed_up": number(r.SpeedUp), "efficiency": number(r.Efficiency), "glups": number(&r.GLUPS),
			"gb_s":      number(&r.Traffic),
			"copy_gb_s": number(r.CopyRate), "copy_fraction": number(r.CopyFraction), "field_sha256": r.FieldSHA256,
			"kernel": "portable", "threads": "1",
			"devices": strings.Join(r.Devices, "; "),
		} {
			if got, ok := line[name]; got != want || !ok {
				t.Errorf("line %d: %s is %q in the CSV, %q in the JSON", i, name, got, want)
			}
		}
		halos := map[bool]string{true: "itself", false: "shared"}[ranks == 1]
		want := []string{fmt.Sprintf("%dx%d", size, size), strconv.Itoa(ranks), strconv.Itoa(r.Depth),
			fmt.Sprintf("%.4g", serial), fmt.Sprintf("%.4g", r.Parallel),
			fmt.Sprintf("%.2f", *r.SpeedUp), fmt.Sprintf("%.3f", *r.Efficiency), fmt.Sprintf("%.3f", r.GLUPS),
			fmt.Sprintf("%.3f", r.Traffic),
			fmt.Sprintf("%.0f%%", 100**r.CopyFraction), halos}
		if got := strings.Fields(table[i]); !slices.Equal(got, want) {
			t.Errorf("row %d: %q, want %q", i, got, want)
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
		ranks, serial := i+1, records[0].Parallel
		if r.Scaling != "weak" || r.NX != 32 || r.NY != 40*ranks || r.Ranks != ranks || *r.Serial != serial ||
			*r.SpeedUp != float64(ranks)*serial/r.Parallel || *r.Efficiency != serial/r.Parallel {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	table, records, lines := benchmark(t, nil, append(args, "--ranks", "2")...)
	if len(records) != 1 || records[0].Serial != nil || records[0].SpeedUp != nil || records[0].Efficiency != nil ||
		lines[0]["t_s"] != "" || lines[0]["efficiency"] != "" {
		t.Errorf("without 1 rank: %+v, %v", records, lines)
	}
	if f := strings.Fields(table[0]); f[3] != "-" || f[5] != "-" || f[6] != "-" {
		t.Errorf("without 1 rank: %q", table[0])
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

// A benchmark that is refused starts nothing.
func TestBenchRefusesBadLists(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ args, want string }{
		{"--ranks 0,x", `launcher: --ranks "0,x": "0": must be integers of at least 1, with commas between them`},
		{"--ranks 1,9 --sizes 64", "launcher: bench --ranks 9 --sizes 64 (64 x 64): run.ranks 9: every rank has " +
			"to work here, and 1 of 9 ranks stays idle: grid.ny 64 has rows for 8"},
	} {
		out := run(t, dir, "launcher", append([]string{"bench"}, strings.Fields(c.args)...)...)
		if out.code != 1 || out.stdout != "" || out.stderr != c.want+"\n" {
			t.Errorf("%s: exit code %d\n%s%swant %s", c.args, out.code, out.stdout, out.stderr, c.want)
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A stall ends a run early, so its time is not the time of all sweeps. The first field stalls at a fixed point, the
// second one in two states that follow each other.
func TestBenchRefusesAFieldThatStalls(t *testing.T) {
	for _, c := range []struct {
		settings []string
		want     string
	}{
		{[]string{"grid.nx=16", "grid.ny=16", "problem.preset=dirichlet", "problem.top=0", "solver.max_iterations=9"},
			"16 x 16, 1 rank: the field stalled after 2 of 9 sweeps; set solver.max_iterations to 2 or less"},
		{[]string{"grid.nx=33", "grid.ny=40", "solver.max_iterations=9999"},
			"33 x 40, 1 rank: the field stalled after 1641 of 9999 sweeps; set solver.max_iterations to 1641 or less"},
	} {
		out := run(t, t.TempDir(), "launcher", append(set(c.settings...), "bench", "--ranks", "1")...)
		want := "launcher: " + c.want + ", or take a larger mesh\n"
		if out.code != 1 || !strings.Contains(out.stderr, want) ||
			!strings.Contains(out.stderr, "launcher: 0 of 1 row complete\n") {
			t.Errorf("exit code %d\n%swant %s", out.code, out.stderr, want)
		}
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
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, text := l.end()
	if code != 130 || !strings.Contains(text, "launcher: 1 of 2 rows complete: out/cut.json, out/cut.csv\n") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out", "cut.json"))
	if n := len(regexp.MustCompile(`"ranks": 1`).FindAll(data, -1)); err != nil || n != 1 {
		t.Errorf("%d records, %v; want 1", n, err)
	}
	l.leavesNothing()
}
