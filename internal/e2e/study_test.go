package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// studyLine is a line of the table of a study.
type studyLine struct {
	Run        int            `json:"run"`
	Keys       map[string]any `json:"keys"`
	Verdict    string         `json:"verdict"`
	Reason     string         `json:"reason"`
	Iterations int            `json:"iterations"`
	SHA256     string         `json:"field_hash"`

	Probes  map[string][]float64 `json:"probes"`
	Results json.RawMessage      `json:"results"`
}

// studyLines reads the table in dir.
func studyLines(t *testing.T, dir string) (lines []studyLine) {
	t.Helper()
	for line := range strings.Lines(readText(t, dir, "table.jsonl")) {
		var l studyLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

// writeRuns writes the documents of a study to dir.
func writeRuns(t *testing.T, dir string, documents ...string) {
	t.Helper()
	writeText(t, strings.Join(documents, "\n")+"\n", dir, "runs.jsonl")
}

// small are the keys of problems that are solved at once.
var small = []string{"problem.preset=", "problem.top=1", "grid.nx=33", "grid.ny=65", "grid.dtype=float64"}

// studyOf returns the arguments of a study with the given keys, whose table is table.jsonl.
func studyOf(keys []string, more ...string) []string {
	return append(append([]string{"study", "--table", "table.jsonl"}, set(keys...)...), more...)
}

// Every run of a study has the bits of the run alone, whatever came before it, on any number of ranks. A run that is
// refused, and one that misses its tolerance, have a line, and change nothing for the next ones.
func TestStudyHasTheBitsOfRunsAlone(t *testing.T) {
	t.Parallel()
	documents := []string{
		`{"solver.method": "multigrid"}`,
		`{"solver.method": "multigrid", "problem": {"screening": 10, "source": "x*y"}}`,
		`{"grid.nx": 2}`,
		`{"solver.method": "jacobi", "solver.max_iterations": 40, "grid.ny": 66}`,
		`{"problem.top": "1/(x-x)"}`,
		`{"solver.method": "multigrid", "problem.fixed": "ix > 12 && ix < 20 && iy > 32"}`,
		`{"solver.method": "multigrid", "grid.ny": 7}`,
		`{"solver.method": "multigrid"}`,
	}
	verdicts := []string{"met", "met", "refused", "missed", "refused", "met", "met", "met"}
	shas := make([]string, len(documents))
	for _, i := range []int{0, 1, 3, 5, 6} {
		var keys map[string]any
		if err := json.Unmarshal([]byte(documents[i]), &keys); err != nil {
			t.Fatal(err)
		}
		var own []string
		for name, value := range keys {
			section, ok := value.(map[string]any)
			if !ok {
				section = map[string]any{"": value}
			}
			for leaf, value := range section {
				own = append(own, fmt.Sprintf("%s=%v", strings.TrimSuffix(name+"."+leaf, "."), value))
			}
		}
		alone, _ := solve(t, onRanks(1, with(small, own...)...)...)
		shas[i] = alone.sha
	}
	shas[7] = shas[0]
	for _, np := range []string{"1", "3"} {
		dir := t.TempDir()
		writeRuns(t, dir, documents...)
		out := run(t, dir, "launcher", studyOf(small, "-np", np, "--runs", "runs.jsonl", "--hash")...)
		if out.code != 1 || !strings.HasPrefix(out.stdout, "8 of 8 runs: 5 met, 1 missed, 2 refused (") ||
			!strings.HasSuffix(out.stderr, "\nlauncher: 2 runs have no result; --continue does them\n") {
			t.Fatalf("%s ranks: exit code %d\n%s%s", np, out.code, out.stdout, out.stderr)
		}
		if !strings.Contains(out.stdout, ")\nrun 3 refused: grid.nx 2: 3 to 2147483647 are allowed\n") {
			t.Errorf("%s ranks: no reason in\n%s", np, out.stdout)
		}
		for i, l := range studyLines(t, dir) {
			if l.Run != i+1 || l.Verdict != verdicts[i] || l.SHA256 != shas[i] {
				t.Errorf("%s ranks: run %d is %+v, want %s with %s", np, i+1, l, verdicts[i], shas[i])
			}
			if i == 2 && l.Reason != "grid.nx 2: 3 to 2147483647 are allowed" {
				t.Errorf("%s ranks: %q", np, l.Reason)
			}
		}
	}
}

// tableHas returns a function that reports whether the table in dir has n lines.
func tableHas(dir string, n int) func(string) bool {
	return func(string) bool {
		data, err := os.ReadFile(filepath.Join(dir, "table.jsonl"))
		return err == nil && bytes.Count(data, []byte("\n")) == n
	}
}

// hundred writes a study of 100 runs to dir, of which one is another one than document formats.
func hundred(t *testing.T, dir, document, other string) {
	t.Helper()
	var documents []string
	for n := range 100 {
		documents = append(documents, fmt.Sprintf(document, n+1))
	}
	documents[56] = other
	writeRuns(t, dir, documents...)
}

// A rank that is killed takes the run that it was at with it. The next ones follow on new ranks.
func TestStudyOutlivesAKilledRank(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hundred(t, dir, `{"problem.top": %d, "solver.max_iterations": 5}`, `{"solver.max_iterations": 1000000000}`)
	l := startLive(t, dir, studyOf(with(small, "solver.method=jacobi", "solver.tolerance=0"), "-np", "2", "--runs",
		"runs.jsonl", "--max-restarts", "1")...)
	awaitName(t, dir, tableHas(dir, 56), l)
	kill(t, l.allRanks(2)[1])
	outlived(l)
}

// outlived checks that a study of 100 runs has ended after a restart, and that run 57 has failed with a killed rank.
func outlived(l *live) {
	l.t.Helper()
	l.ends(1, "launcher: restart 1 of 1: from the next run\n", `100 of 100 runs: 99 done, 1 failed \(`)
	l.leavesNothing()
	for i, line := range studyLines(l.t, l.cmd.Dir) {
		failed := strings.Contains(line.Reason, "was killed by SIGKILL")
		if line.Run != i+1 || failed != (line.Run == 57) || (line.Verdict == "failed") != failed {
			l.t.Errorf("line %d: %+v", i+1, line)
		}
	}
}

// A rank that is killed in a run of its own takes this run with it. The runs that it or another rank was to do next
// follow on new ranks, even if no other ones are left.
func TestStudyOutlivesARankKilledInARunOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hundred(t, dir, `{"problem.top": %d}`, // milliseconds, and the other one seconds
		`{"grid": {"nx": 513, "ny": 513}, "problem.coefficient": "10^(7*sin(9*ix*ix*iy))"}`)
	keys := append(small, "solver.method=multigrid", "solver.tolerance=0", "output.field=field.npy")
	l := startLive(t, dir, studyOf(keys, "-np", "2", "--runs", "runs.jsonl", "--max-restarts", "1")...)
	awaitName(t, dir, tableHas(dir, 56), l)
	const unfinished = "field-57.npy"
	out := filepath.Join(dir, "out")
	stages, err := filepath.Glob(filepath.Join(out, ".jacobi-*", "list.draft"))
	if err != nil || len(stages) != 1 {
		t.Fatalf("%q, %v: want one directory of unfinished files", stages, err)
	}
	awaitName(t, filepath.Dir(stages[0]), func(name string) bool { // all others but for the next one of the same rank
		fields, err := filepath.Glob(filepath.Join(out, "field-*.npy"))
		return err == nil && len(fields) == 98 && name == unfinished
	}, l)
	kill(t, writer(t, l.allRanks(2), unfinished))
	outlived(l)
}

// writer returns the process that has an open file of this name. A rank opens the file of its run some time after it is
// made, of which nobody is told.
func writer(t *testing.T, pids []int, name string) int {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, pid := range pids {
			links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			if err != nil {
				t.Fatal(err)
			}
			for _, link := range links {
				if path, err := os.Readlink(link); err == nil && filepath.Base(path) == name {
					return pid
				}
			}
		}
	}
	t.Fatalf("none of %v writes %s", pids, name)
	return 0
}

// A disk that becomes full costs a study the runs that find no room for their fields, and each has a line. A table that
// finds no room is tested in package study.
func TestStudyOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir, _ := smallDisk(t, "256k")
	got := run(t, dir, "launcher", studyOf(with(small, "grid.nx=65", "solver.max_iterations=3",
		"output.field=field.npy"), "-np", "2", "--vary", "problem.left=1,2,3,4,5,6,7,8")...)
	const reason = `output.dir "out": not enough space: 33 KiB (33928 bytes) needed, 20 KiB (20480 bytes) available`
	got.fails(t, 1, "\nlauncher: 2 runs have no result; --continue does them\n")
	for i, l := range studyLines(t, dir) {
		want := map[string]string{"missed": ""}
		if i >= 6 { // whether the launcher looks first or the rank needs the room first
			want = map[string]string{"refused": reason, "failed": "rank 0: create field file: " + reason}
		}
		if why, ok := want[l.Verdict]; l.Run != i+1 || !ok || l.Reason != why {
			t.Errorf("line %d: %+v", i+1, l)
		}
		if i >= 6 && !strings.Contains(got.stdout, fmt.Sprintf(" %s: %s\n", l.Verdict, l.Reason)) {
			t.Errorf("no reason of run %d in\n%s", i+1, got.stdout)
		}
	}
}

// Ctrl-C keeps the lines that are there. --continue does the other runs, and refuses runs that are not those of the
// table.
func TestStudyIsContinued(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeRuns(t, dir, `{"problem.left": 1, "solver.max_iterations": 3}`,
		`{"problem.left": 2, "solver.max_iterations": 3}`, `{"problem.left": 3}`, `{"problem.left": 4}`)
	args := func(most string, more ...string) []string {
		keys := append(small, "solver.method=jacobi", "solver.tolerance=0", "solver.max_iterations="+most)
		return append(studyOf(keys, "-np", "2", "--runs", "runs.jsonl"), more...)
	}
	l := startLive(t, dir, args("1000000000")...)
	awaitName(t, dir, tableHas(dir, 2), l)
	run(t, dir, "launcher", args("5", "--set", "output.dir=other", "--continue")...).fails(t, 1,
		fmt.Sprintf(`--table "table.jsonl": in use by run study, process %d on `, l.cmd.Process.Pid))
	run(t, dir, "launcher", args("5", "--table", "other.jsonl")...).fails(t, 1, `output.dir "out": in use by run `)
	if _, err := os.Stat(filepath.Join(dir, "other.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a study that was refused has left a table: %v", err)
	}
	l.signal(os.Interrupt)
	l.ends(130, `2 of 4 runs: 2 done \(`)
	l.leavesNothing()
	run(t, dir, "launcher", args("5")...).fails(t, 1, "launcher: --table \"table.jsonl\": the file exists; --continue "+
		"goes on from it, or name another one\n")
	out := mustRun(t, dir, "launcher", args("5", "--continue")...)
	if !strings.HasPrefix(out.stdout, "4 of 4 runs: 4 done (") {
		t.Errorf("stdout\n%s", out.stdout)
	}
	for i, line := range studyLines(t, dir) {
		if want := []int{3, 3, 5, 5}[i]; line.Run != i+1 || line.Iterations != want {
			t.Errorf("line %d: %+v, want %d sweeps", i+1, line, want)
		}
	}
	writeRuns(t, dir, `{"problem.left": 7}`, `{}`, `{}`, `{}`)
	run(t, dir, "launcher", args("5", "--continue")...).fails(t, 1, "line 1: run 1 had problem.left=1, and now has 7; ")
}

// --continue does runs again that were refused. It refuses another problem with the same columns.
func TestStudyGoesOnWithItsProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	study := func(top, nx string) outcome {
		keys := with(small, "solver.method=multigrid", "problem.top="+top, "grid.nx="+nx)
		return run(t, dir, "launcher", studyOf(keys, "-np", "1", "--vary", "problem.source=0,a.npy,1", "--continue")...)
	}
	got := study("1", "33")
	if got.code != 1 || !strings.HasPrefix(got.stdout, "3 of 3 runs: 2 met, 1 refused (") ||
		!strings.HasSuffix(got.stdout, ")\nrun 2 refused: problem.source \"a.npy\": no such file or directory\n") {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	const head = "{'descr': '<f4', 'fortran_order': False, 'shape': (65, 33), }"
	writeText(t, fmt.Sprintf("\x93NUMPY\x01\x00\x76\x00%-117s\n", head)+string(make([]byte, 4*33*65)), dir, "a.npy")
	if got = study("1", "33"); got.code != 0 || !strings.HasPrefix(got.stdout, "3 of 3 runs: 3 met (") ||
		!strings.HasPrefix(got.stderr, "launcher: 1 run on 1 rank; ") {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for i, l := range studyLines(t, dir) {
		if l.Run != []int{1, 3, 2}[i] || l.Verdict != "met" || l.Results == nil {
			t.Errorf("line %d: %+v", i+1, l)
		}
	}
	study("2", "65").fails(t, 1, "launcher: --table \"table.jsonl\": its runs are of another study: "+
		`grid.nx was "33" and is "65", problem.top was "1" and is "2"; go on with the keys and files that its runs had`)
	stage := filepath.Join(dir, "out", ".jacobi-killed-1")
	if err := os.Mkdir(stage, 0o700); err != nil {
		t.Fatal(err)
	}
	writeText(t, "", stage, "x.npy")
	study("1", "33").fails(t, 0, "launcher: out: removed 1 unfinished file ") // it has nothing to do but this
	if _, err := os.Stat(stage); !errors.Is(err, os.ErrNotExist) || len(studyLines(t, dir)) != 3 {
		t.Errorf("%v, lines %v", err, studyLines(t, dir))
	}
}

// Files of runs have their numbers, and the bits of the run alone. The table has the values of probes.
func TestStudyWritesFields(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	probed := append(small, "output.field=field.npy", "output.probes=top=[16,0]; cut=(0,0)..(0.5,0.5)/3")
	out := run(t, dir, "launcher", studyOf(probed, "-np", "2", "--vary", "solver.max_iterations=3,4")...)
	if out.code != 4 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	for n, most := range map[int]string{1: "3", 2: "4"} {
		alone := t.TempDir()
		run(t, alone, "launcher", set(with(small, "solver.max_iterations="+most)...)...)
		got := readText(t, dir, "out", fmt.Sprintf("field-%d.npy", n))
		if got != readText(t, alone, "out", "field.npy") {
			t.Errorf("run %d: the field is not that of the run alone", n)
		}
		values := []byte(got[len(got)-33*65*8:])
		at := func(ix, iy int) float64 {
			return math.Float64frombits(binary.NativeEndian.Uint64(values[8*(33*iy+ix):]))
		}
		cut := []float64{at(0, 0), at(8, 16), at(16, 32)}
		if p := studyLines(t, dir)[n-1].Probes; !slices.Equal(p["top"], []float64{1}) || !slices.Equal(p["cut"], cut) {
			t.Errorf("run %d: probes %v, want cut=%v", n, p, cut)
		}
	}
}

// What is no study, and no run, is refused before anything starts. The keys that runs may not vary are in package
// configs.
func TestStudyRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeRuns(t, dir, `{"grid.nx": 9}`, `{"grid.nx": `)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "study: --vary or --runs has to say which runs there are\n"},
		{[]string{"--vary", "run.ranks=1,2"}, "run.ranks (run 1): the key belongs to the start of the ranks, and is " +
			"the same for all runs\n"},
		{[]string{"--vary", "grid.nx=9", "--set", "output.trace=t.json"},
			"output.trace \"t.json\": the key is of a run that is alone\n"},
		{[]string{"--runs", "runs.jsonl"}, "--runs runs.jsonl, line 2: column 12: unexpected end of JSON input\n"},
		{[]string{"--vary", "grid.nx=9", "--table", "t.txt"},
			"--table \"t.txt\": the name has to end in .csv or .jsonl\n"},
	} {
		out := run(t, dir, "launcher", append([]string{"study"}, c.args...)...)
		if out.code != 1 || out.stderr != "launcher: "+c.want {
			t.Errorf("%v: exit code %d, %q; want %q", c.args, out.code, out.stderr, c.want)
		}
	}
}

// studyAndServe does runs of all ranks and runs of one rank each by study and by serve. It compares their fields with
// those of one rank here. on prepares the launcher, which gets more arguments.
func studyAndServe(t *testing.T, on func(launcher *exec.Cmd) *exec.Cmd, more ...string) {
	t.Helper()
	dir, here := t.TempDir(), t.TempDir()
	keys := append(small, "output.field=field.npy", "grid.nx=200", "grid.ny=300")
	vary := []string{"--vary", "solver.method=jacobi,multigrid", "--vary", "solver.max_iterations=3,4", "--hash"}
	want := run(t, here, "launcher", studyOf(keys, append(vary, "-np", "1")...)...)
	ctx := limited(t)
	got := finish(t, ctx, on(command(ctx, dir, "launcher", append(studyOf(keys, vary...), more...)...)))
	const summary = "4 of 4 runs: 4 missed ("
	if want.code != 4 || got.code != 4 || !strings.HasPrefix(got.stdout, summary) {
		t.Fatalf("%v: exit codes %d, %d\n%s%s", more, want.code, got.code, got.stdout, got.stderr)
	}
	lines, alone := studyLines(t, dir), studyLines(t, here)
	for i, l := range alone {
		if lines[i].SHA256 != l.SHA256 {
			t.Errorf("%v: run %d has the field %s, want %s", more, i+1, lines[i].SHA256, l.SHA256)
		}
	}
	sameFiles(t, here, dir, 1, 2, 3, 4)

	dir = t.TempDir()
	c := serveBy(t, on(serving(t, dir, append(set(keys...), more...)...)))
	c.asksFor(alone)
	if err := errors.Join(c.in.Close(), c.cmd.Wait()); err != nil {
		t.Error(err)
	}
	sameFiles(t, here, dir, 1, 2, 3, 4)
}

// asksFor requests the runs of a study, and compares their fields.
func (c *client) asksFor(runs []studyLine) {
	c.t.Helper()
	for _, l := range runs {
		l.Keys["output.field"] = fmt.Sprintf("field-%d.npy", l.Run)
		keys, err := json.Marshal(l.Keys)
		if err != nil {
			c.t.Fatal(err)
		}
		c.ask(`{"id": %d, "hash": true, "keys": %s}`, l.Run, keys)
	}
	for _, l := range runs {
		if end, r := c.until("end"); string(end.ID) != fmt.Sprint(l.Run) || r.FieldHash != l.SHA256 {
			c.t.Errorf("id %s: %+v, field %s, want %s of id %d", end.ID, end.End, r.FieldHash, l.SHA256, l.Run)
		}
	}
}

// sameFiles compares the fields of runs that are in the outputs of two directories.
func sameFiles(t *testing.T, want, got string, runs ...int) {
	t.Helper()
	for _, n := range runs {
		name := filepath.Join("out", fmt.Sprintf("field-%d.npy", n))
		if readText(t, got, name) != readText(t, want, name) {
			t.Errorf("%s in %s is not that in %s", name, got, want)
		}
	}
}
