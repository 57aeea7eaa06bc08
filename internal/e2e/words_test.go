package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dustin/go-humanize"
)

// The launcher warns of settings that a user may not want before a run, in a dry run and in doctor. Warnings do not
// prevent the run.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	size := onRanks(2, "grid.nx=40", "grid.ny=48", "solver.max_iterations=3", "solver.tolerance=0")
	first := append(set("grid.dtype=float64", "output.dir=.", "output.field=start.npy"), size...)
	mustRun(t, dir, "launcher", first...)
	args := append(set("problem.initial=start.npy", "device.threads=4096"), size...)
	stray := "environment JACOBI_SOVLER: no key has this variable, and it is ignored"
	want := []string{
		stray,
		`problem.initial "start.npy": its values are float64, and are rounded to grid.dtype float32`,
		fmt.Sprintf("device.threads 4096: 2 ranks on this machine keep 8192 threads busy, and it has %s", coresText()),
	}
	env := []string{"JACOBI_SOVLER=1"}
	dry := runWith(t, env, dir, "launcher", append(args, "--dry-run")...)
	out := runWith(t, env, dir, "launcher", append(args, "--set", "device.threads=2")...)
	if out.code != 0 || dry.code != 0 {
		t.Fatalf("exit codes %d, %d\n%s%s", dry.code, out.code, dry.stderr, out.stderr)
	}
	for _, w := range want {
		if !strings.Contains(dry.stdout, "\n# Warning: "+w+"\n") {
			t.Errorf("no warning %s in the dry run:\n%s", w, dry.stdout)
		}
	}
	for _, w := range want[:2] {
		if strings.Count(out.stderr, "launcher: warning: "+w+"\n") != 1 {
			t.Errorf("no warning, or several: %s:\n%s", w, out.stderr)
		}
	}
	d := parseDiagnosis(t, runWith(t, env, dir, "launcher", append([]string{"doctor", "--json"}, args...)...))
	if len(d.Warnings) != 3 || d.Warnings[0].What != want[0] || d.Warnings[1].What != want[1] ||
		!strings.Contains(d.Warnings[2].What, "8192 threads of ranks 0, 1 share") {
		t.Errorf("doctor warns of %+v", d.Warnings)
	}
}

func coresText() string {
	if n := runtime.NumCPU(); n != 1 {
		return fmt.Sprintf("%d cores", n)
	}
	return "1 core"
}

// A dry run, doctor and the report of the run agree about memory.
func TestMemoryIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, set("checkpoint.every=10m", "checkpoint.dir=checkpoints", "halo.depth=5",
		"device.threads=3"), set("solver.method=multigrid", "grid.dtype=float64",
		"problem.source=1")} {
		dir := t.TempDir()
		args := onRanks(3, "grid.nx=1000", "grid.ny=960", "solver.max_iterations=3", "solver.tolerance=0")
		args = append(args, more...)
		dry := run(t, dir, "launcher", append(args, "--dry-run")...)
		d := parseDiagnosis(t, run(t, dir, "launcher", append([]string{"doctor", "--json"}, args...)...))
		mustRun(t, dir, "launcher", args...)
		total := int64(0)
		for i, k := range readReport(t, filepath.Join(dir, "out")).Ranks {
			total += k.MemoryBytes
			if said := d.Ranks[i].Report.MemoryBytes; said != k.MemoryBytes {
				t.Errorf("rank %d takes %d bytes, and doctor said %d", i, k.MemoryBytes, said)
			}
			line := fmt.Sprintf("  %s\n", humanize.IBytes(uint64(k.MemoryBytes)))
			if rows := strings.Split(dry.stdout, fmt.Sprintf("\n#   %d ", i)); len(rows) != 2 ||
				!strings.Contains(rows[1][:strings.Index(rows[1], "\n")+1], line) {
				t.Errorf("rank %d takes %d bytes, and the dry run says\n%s", i, k.MemoryBytes, dry.stdout)
			}
		}
		if want := fmt.Sprintf("\n# Memory: %s for fields and halos, ",
			humanize.IBytes(uint64(total))); !strings.Contains(dry.stdout, want) {
			t.Errorf("the ranks take %d bytes, and the dry run says\n%s", total, dry.stdout)
		}
	}
}

// checkJSON parses every line as a log entry without duplicate keys, and returns the messages.
func checkJSON(t *testing.T, text string) (messages []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		d := json.NewDecoder(strings.NewReader(line))
		keys := map[string]bool{}
		if start, err := d.Token(); err != nil || start != json.Delim('{') {
			t.Errorf("no object: %q", line)
			continue
		}
		for d.More() {
			key, err := d.Token()
			var value any
			if err == nil {
				err = d.Decode(&value)
			}
			if err != nil {
				t.Errorf("%v in %q", err, line)
				break
			}
			name := key.(string)
			if keys[name] {
				t.Errorf("%s stands twice in %q", name, line)
			}
			keys[name] = true
			if name == "msg" {
				messages = append(messages, value.(string))
			}
		}
		if !json.Valid([]byte(line)) || !keys["level"] || !keys["ts"] || !keys["msg"] {
			t.Errorf("no entry of a log: %q", line)
		}
	}
	return messages
}

// With log.format json every line on stderr is JSON: lines of ranks, of the launcher, of a refused run and of a crash.
func TestEveryLineIsJSON(t *testing.T) {
	size := set("grid.nx=64", "grid.ny=64", "solver.max_iterations=20", "log.format=json", "run.ranks=2")
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string // one of the messages
	}{
		{append(set("halo.transport=nats", "device.threads=64"), "-v"), 0, "20 of 20 sweeps (100%), "},
		{set("output.report=-"), 0, "not converged: stopped at max_iterations; norm "},
		{set("grid.nxx=5"), 1, "unknown key grid.nxx (--set): did you mean grid.nx?"},
		{[]string{"--frobnicate"}, 1, "unknown flag --frobnicate; see launcher --help"},
		{append(set("output.dir=/proc/none"), "--dry-run"), 1, `output.dir "/proc/none": cannot be created`},
		{[]string{"doctor", "-v"}, 0, "link open"},
		{[]string{"bench", "--ranks", "1", "--sizes", "32", "--repeat", "1"}, 0,
			"1 of 1 row complete: out/bench.json, out/bench.csv"},
	} {
		out := run(t, dir, "launcher", append(size, c.args...)...)
		messages := checkJSON(t, out.stderr)
		found := slices.ContainsFunc(messages, func(m string) bool { return strings.HasPrefix(m, c.want) })
		if out.code != c.code || !found {
			t.Errorf("%v: exit code %d, no message %q in\n%s", c.args, out.code, c.want, out.stderr)
		}
	}
	l := begin(t, dir, size...)
	rank := l.allRanks(2)[1]
	if err := syscall.Kill(rank, syscall.SIGQUIT); err != nil { // Go prints its goroutines and exits
		t.Fatal(err)
	}
	code, text := l.end()
	if messages := checkJSON(t, text); code != 1 || !slices.Contains(messages, "SIGQUIT: quit") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// A rank with wrong arguments ends as a launcher does.
func TestWrongArgumentsOfARank(t *testing.T) {
	for arg, want := range map[string]string{
		"--frobnicate": "jacobi-rank: unknown flag: --frobnicate; see jacobi-rank --help\n",
		"run.yaml":     `jacobi-rank: argument "run.yaml": none are allowed; see jacobi-rank --help` + "\n",
	} {
		if out := run(t, t.TempDir(), "jacobi-rank", arg); out.code != 1 || out.stderr != want {
			t.Errorf("%s: exit code %d, %s", arg, out.code, out.stderr)
		}
	}
}

// above is a problem whose 20 sweeps do not meet the tolerance.
var above = set("problem.preset=dirichlet", "grid.nx=64", "grid.ny=64", "grid.dtype=float64", "solver.tolerance=1e-6",
	"solver.max_iterations=20", "output.picture=")

// wantAbove checks the end of a run of above with its files in dir: all files, exit code 4, a remedy at last, and no
// rank to blame.
func wantAbove(t *testing.T, dir string, out outcome) {
	t.Helper()
	if !strings.Contains(out.stdout, "\n\n  The tolerance was not met: ") || out.code != 4 {
		t.Errorf("exit code %d, want 4, and what to do at the end of\n%s%s", out.code, out.stdout, out.stderr)
	}
	if r := readReport(t, dir); r.Verdict != "missed" || r.Sweeps != 20 {
		t.Errorf("verdict %s after %d sweeps", r.Verdict, r.Sweeps)
	}
	for _, word := range []string{"failed", "restart", "rank 0"} {
		if strings.Contains(out.stderr, word) {
			t.Errorf("%q on stderr:\n%s", word, out.stderr)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A tolerance that was not met has an exit code of its own, with a launcher, for a rank alone and for ranks of a
// scheduler. It is no failure. A stalled run has missed it, too. Other verdicts are in TestDoors.
func TestMissedTolerance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wantAbove(t, filepath.Join(dir, "out"), run(t, dir, "launcher", append(above, "-np", "3", "--max-restarts", "2",
		"--set", "checkpoint.every=10", "--set", "checkpoint.dir=saved")...))
	dir = t.TempDir()
	wantAbove(t, filepath.Join(dir, "out"), run(t, dir, "jacobi-rank", append(above, set("run.ranks=1")...)...))
	dir = t.TempDir()
	outs := byHand(t, dir, pmi(3), above...)
	for r, o := range outs {
		if o.code != 4 {
			t.Errorf("rank %d: exit code %d", r, o.code)
		}
	}
	wantAbove(t, filepath.Join(dir, "out"), together(outs))
	got, r := solve(t, onRanks(2, "problem.preset=dirichlet", "grid.nx=16", "grid.ny=16", "solver.tolerance=1e-30",
		"solver.max_iterations=100000", "problem.initial=x*(1-y)")...)
	if got.reason != "stalled" || r.Verdict != "missed" {
		t.Errorf("%s: %s, want stalled and missed", got.reason, r.Verdict)
	}
}

// The output of a dry run is a run file with the same verdict, and so is the floor of rounding without a tolerance.
func TestDryRunKeepsTheVerdict(t *testing.T) {
	t.Parallel()
	weak := set("problem.left=neumann(0)", "problem.right=neumann(0)", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.source=x*y", "problem.screening=1e-5", "grid.nx=65", "grid.ny=65")
	for _, c := range []struct {
		verdict, words string
		args           []string
	}{
		{"done", "not converged: stopped at max_iterations", set("grid.nx=64", "grid.ny=64",
			"solver.max_iterations=20")},
		{"met", "converged to the floor of rounding, which is above the default tolerance", weak},
	} {
		dir := t.TempDir()
		plan := runNatural(t, dir, "launcher", append(c.args, "-np", "1", "--dry-run")...)
		writeText(t, plan.stdout, dir, "run.yaml")
		for _, args := range [][]string{c.args, {"--config", "run.yaml"}} {
			out := runNatural(t, dir, "launcher", append(args, "-np", "1")...)
			if out.code != 0 {
				t.Fatalf("%q: exit code %d\n%s%s", args, out.code, out.stdout, out.stderr)
			}
			r := readReport(t, filepath.Join(dir, "out"))
			if r.Verdict != c.verdict || !strings.Contains(out.stdout, "  "+c.words+"\n") {
				t.Errorf("%q: %s, want %s and %q in\n%s", args, r.Verdict, c.verdict, c.words, out.stdout)
			}
		}
	}
}
