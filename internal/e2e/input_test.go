package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/observe/events"
)

// Without arguments the launcher says what it is and starts nothing, whatever keys the environment has.
func TestLauncherWithoutArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := run(t, dir, "launcher")
	for _, text := range []string{"launcher solves -div(a grad u) + k2 u = f", "launcher --help", "-np 8"} {
		if !strings.Contains(out.stderr, text) {
			t.Errorf("no %q in\n%s", text, out.stderr)
		}
	}
	if made, err := os.ReadDir(dir); out.code != 2 || out.stdout != "" || len(made) > 0 || err != nil {
		t.Errorf("exit code %d, output %q, files %v, %v", out.code, out.stdout, made, err)
	}
}

// Bad input is refused before any rank starts. The error has the key or argument, its value, and the allowed values.
func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, port, _ := net.SplitHostPort(takenPort(t))
	wrong := startServer(t)
	wrong.User = url.UserPassword(wrong.User.Username(), "hunter2")
	for _, c := range badInput(dir, port, wrong.String(), write) {
		out := run(t, dir, "launcher", c.args...)
		if out.code == 0 || !strings.Contains(out.stderr, "launcher: ") || !strings.Contains(out.stderr, c.want) ||
			strings.Contains(out.stdout+out.stderr, "hunter2") {
			t.Errorf("launcher %v: exit code %d, stderr\n%s\nwant %s", c.args, out.code, out.stderr, c.want)
		}
		if out.took > 15*time.Second {
			t.Errorf("launcher %v took %v to refuse", c.args, out.took)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "out")); err == nil && len(entries) > 0 {
		t.Errorf("a refused run wrote %v", entries)
	}
}

// refusal is a command line of the launcher and a part of the message that refuses it.
type refusal struct {
	args []string
	want string
}

// badInput returns command lines that the launcher must refuse, one or two of each kind; what a run file may not say is
// proven without processes (configs, internal/compute/problem, internal/run/plan, cmd/launcher). port is taken, wrong
// the address of a server with a password that is not its own, and write makes a file in dir.
func badInput(dir, port, wrong string, write func(name, text string) string) []refusal {
	file, group := write("file", ""), write("field.zarr", "")
	return []refusal{
		{[]string{"-np", "0"}, "-np 0: must be at least 1"},
		{set("grid.nxx=5"), "unknown key grid.nxx (--set): did you mean grid.nx?"},
		{set("problem.left=sin(x"), `problem.left "sin(x": column 6: the expression ends too early`},
		{set("problem.left=1/(y-y)"), `problem.left "1/(y-y)" at row 0, column 0 (x = 0, y = 0): +Inf; values must ` +
			`be finite`},
		{set("problem.initial=nope.npy"), `problem.initial "nope.npy": no such file or directory`},
		{set("output.dir=" + file), `output.dir "` + file + `"`},
		{set("output.picture=a.gif"), `output.picture "a.gif": the name has to end in .png, .jpg or .jpeg`},
		{set("output.dir="+filepath.Dir(group), "output.field=field.zarr"), "exists and is no Zarr group of format 3"},
		{set("nats.url=nats://127.0.0.1:1"), "nats.url: connect to the NATS server at nats://127.0.0.1:1: connection " +
			"refused"},
		{set("nats.url=" + wrong), "nats.url: connect to the NATS server at nats://"},
		{set("grid.nx=4000000", "grid.ny=4000000"), "grid.nx 4000000, grid.ny 4000000: memory: "},
		{[]string{"--config", filepath.Join(dir, "none.yaml")}, "none.yaml: no such file or directory"},
		{[]string{"--config", write("c.toml", "[halo]\ntransport = 5\n")}, "halo.transport"},
		{[]string{"--config", write("d.json", "{\n \"grid\": {\n  \"nx\": 5,,\n }}")},
			"run file " + filepath.Join(dir, "d.json") + ": line 3, column 11: "},
		{set("problem.left=neumann(0)", "problem.right=neumann(0)"), `no side has values, so any constant can be ` +
			`added`},
		{set("grid.ny=64", "halo.depth=10000"), "halo.depth 10000: 1 to 62 are allowed with grid.ny 64\n"},
		{set("nats.port=" + port), "nats.port " + port + ": embedded NATS server on 127.0.0.1: Error listening on "},
		{[]string{"--resume", ""}, `--resume "": must be the directory of a checkpoint; --restart goes on from ` +
			`where checkpoints are written`},
		{[]string{"-np2", "--set", "grid.nx=2"}, "grid.nx 2: 3 to 2147483647 are allowed"},
		{set("problem.left=" + strings.Repeat("a", 400)), `problem.left "` + strings.Repeat("a", 119) + " … " +
			strings.Repeat("a", 39) + `" (402 characters): column 1: unknown name `},
	}
}

// A kernel that this processor does not have is refused before any rank starts, by both methods.
func TestKernelOfAnotherProcessorIsRefused(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"jacobi", "multigrid"} {
		runWith(t, []string{"GODEBUG=cpu.avx512f=off"}, t.TempDir(), "launcher", set("device.kernel=avx512",
			"solver.method="+method, "grid.dtype=float64", "grid.nx=99", "grid.ny=99")...).fails(t, 1,
			`launcher: device.kernel "avx512": cpu kernel "avx512": this machine has `)
	}
}

// No program waits at a named pipe in the place of a file: it names the pipe and ends. A rendezvous file may still be
// replaced, so a rank retries until its timeout.
func TestNamedPipesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.npy")
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	meeting := filepath.Join(dir, "out", ".jacobi-rendezvous")
	for _, path := range []string{pipe, filepath.Join(dir, "pipe.yaml"), meeting} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const refused = "a named pipe, not a regular file"
	for _, c := range []struct {
		program string
		args    []string
		want    string
	}{
		{"launcher", []string{"--config", "pipe.yaml"}, "open pipe.yaml: " + refused},
		{"launcher", set("problem.initial=pipe.npy"), `launcher: problem.initial "pipe.npy": ` + refused},
		{"launcher", []string{"--hostfile", "pipe.npy"}, "launcher: --hostfile: open pipe.npy: " + refused},
		{"launcher", []string{"--hostfile", "/dev/zero"}, "--hostfile: open /dev/zero: a device, not a regular file"},
		{"launcher", set("nats.url=nats://h", "nats.secret_file=pipe.npy"), "secret_file: open pipe.npy: " + refused},
		{"launcher", set("nats.url=nats://h", "nats.ca=pipe.npy"), "nats.ca: open pipe.npy: " + refused},
		{"jacobi-rank", []string{"--config", "pipe.yaml"}, "jacobi-rank: run file: open pipe.yaml: " + refused},
		{"jacobi-rank", set("problem.initial=pipe.npy"), `jacobi-rank: problem.initial "pipe.npy": ` + refused},
	} {
		out := run(t, dir, c.program, c.args...)
		if out.code == 0 || !strings.Contains(out.stderr, c.want) || out.took > 15*time.Second {
			t.Errorf("%s %v: code %d after %v\n%s\nwant %s", c.program, c.args, out.code, out.took, out.stderr, c.want)
		}
	}
	late := byHand(t, dir, pmi(2)[1:], append(scheduled, set("halo.timeout=1s")...)...)[0]
	want := "find the server of rank 0 within 1s: rendezvous file " + meeting + ": open " + meeting + ": " + refused
	if late.code != 3 || !strings.Contains(late.stderr, want) || late.took > 15*time.Second {
		t.Errorf("exit code %d after %v, %s; want 3 and %s", late.code, late.took, late.stderr, want)
	}
	// Rank 0 replaces the pipe, and the run succeeds.
	if out := together(byHand(t, dir, pmi(2), scheduled...)); out.code != 0 {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
}

// A run file may name files beside it, wherever the launcher is started and the ranks are. Outputs go to the working
// directory.
func TestFilesBesideARunFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cases := filepath.Join(dir, "cases")
	if err := os.Mkdir(cases, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"cases/pair.png": readText(t, "../../configs/pair.png"), // of 257 x 129 pixels
		"cases/pair.json": `{"problem": {"drawing": "pair.png", "colours": {"#b87333": {"name": "plus", "value": 1},
			"#1565c0": {"name": "minus", "value": -1}, "#ffffff": {}}}}`,
		// A stand-in for ssh, to a host whose sessions begin in another directory.
		"ssh": "#!/bin/sh\nwhile [ \"$1\" != elsewhere ]; do shift; done\nshift\ncd /\nexec sh -c \"$*\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const points = "  Mesh           257 x 129, float64\n" // a point for each pixel
	for _, c := range []struct {
		program string
		more    []string
		want    string
	}{
		{"launcher", []string{"--dry-run"},
			"# problem.drawing: cases/pair.png, beside the run file; grid.nx and grid.ny follow from its size\n"},
		{"launcher", []string{"--ssh", "./ssh", "--host", "elsewhere:2"}, "1,170: cases/pair.png: minus -1, plus 1"},
		{"launcher", []string{"-np=2"}, points},
		{"jacobi-rank", []string{"--set=run.ranks=1"}, points},
	} {
		out := runNatural(t, dir, c.program, append(c.more, "--config", "cases/pair.json")...)
		if out.code != 0 || !strings.Contains(out.stdout, c.want) {
			t.Errorf("%s %v: exit code %d, no %q\n%s%s", c.program, c.more, out.code, c.want, out.stdout, out.stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "field.npy")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(cases, "pair.png")); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"launcher", "jacobi-rank"} {
		runNatural(t, dir, program, "--config", "cases/pair.json").fails(t, 1, program+
			`: problem.drawing "pair.png": no such file or directory; names in the file were looked for in "cases", `+
			"too\n")
	}
}

// eventsOf parses the output of --json, which may hold no key that events.Event does not know.
func eventsOf(t *testing.T, text string) (all []events.Event, kinds []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e events.Event
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil || e.Time.IsZero() {
			t.Fatalf("%s: %v", line, err)
		}
		all, kinds = append(all, e), append(kinds, e.Event)
	}
	return all, kinds
}

// --json writes the plan first, then what happens, then the report, which is that of the file, and the end.
func TestJSONEvents(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, dir, "launcher", append(onRanks(3, "grid.nx=200", "grid.ny=300", "solver.max_iterations=400",
		"problem.preset=gtc2019"), "--json")...)
	if !strings.Contains(out.stderr, "Field SHA-256") {
		t.Errorf("no summary in\n%s", out.stderr)
	}
	all, kinds := eventsOf(t, out.stdout)
	n := len(all)
	if kinds[0] != "plan" || kinds[n-2] != "report" || kinds[n-1] != "end" || slices.Index(kinds, "report") != n-2 {
		t.Fatalf("events %q", kinds)
	}
	if p := all[0].Plan; p.Schema != events.Schema || p.Start != 1 || len(p.Ranks) != 3 || p.Ranks[2].Stripe[1] != 299 {
		t.Errorf("plan %+v", p)
	}
	if end := *all[n-1].End; end != (events.End{Verdict: "done"}) {
		t.Errorf("end %+v", end)
	}
	var iterations int
	final := map[int]int{}
	warned := false
	for _, e := range all {
		if e.Progress != nil {
			if e.Progress.Iterations < iterations || e.Progress.Step != "sweep" {
				t.Errorf("progress %+v after %d", e.Progress, iterations)
			}
			iterations = e.Progress.Iterations
		}
		if e.Stats != nil && e.Stats.Final {
			final[e.Stats.Rank] = e.Stats.Sweeps
		}
		warned = warned || e.Message != nil && e.Message.Level == "warn" &&
			strings.HasPrefix(e.Message.Text, "solver.tolerance 1e-08 is below what float32 attains")
	}
	if iterations != 400 || !maps.Equal(final, map[int]int{0: 400, 1: 400, 2: 400}) || !warned {
		t.Errorf("%d iterations, %v on ranks; warned %t", iterations, final, warned)
	}
	var file bytes.Buffer
	if err := json.Compact(&file, []byte(readText(t, dir, "out", "report.json"))); err != nil ||
		file.String() != string(all[n-2].Report) {
		t.Errorf("report %s\nwant %s (%v)", all[n-2].Report, &file, err)
	}
}

// A command that starts nothing tells how it ended, and so does one whose plan alone is asked for.
func TestJSONOfNoRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  []string
		kinds []string
		end   events.End
	}{
		{set("grid.nx=1"), []string{"end"}, events.End{ExitCode: 1, Error: "grid.nx 1: 3 to 2147483647 are allowed"}},
		{set("output.field=-"), []string{"end"}, events.End{ExitCode: 1,
			Error: "--json: standard output is for events; no file of output can go there"}},
		{append(set("grid.nx=64", "grid.ny=64"), "--dry-run"), []string{"plan", "message", "end"},
			events.End{}},
	} {
		out := run(t, t.TempDir(), "launcher", append(c.args, "--json", "-np", "2")...)
		all, kinds := eventsOf(t, out.stdout)
		if !slices.Equal(kinds, c.kinds) || *all[len(all)-1].End != c.end || out.code != c.end.ExitCode {
			t.Errorf("%q: exit code %d\n%s", c.args, out.code, out.stdout)
		}
	}
}

// version --json has the version of the program and of the events.
func TestVersionJSON(t *testing.T) {
	t.Parallel()
	out := run(t, t.TempDir(), "launcher", "version", "--json")
	plain := run(t, t.TempDir(), "launcher", "version")
	var v map[string]any
	if err := json.Unmarshal([]byte(out.stdout), &v); err != nil || v["program"] != "launcher" ||
		plain.stdout != "launcher "+v["version"].(string)+"\n" || v["schema"] != float64(events.Schema) || len(v) != 5 {
		t.Errorf("%s, %v, beside %s", out.stdout, err, plain.stdout)
	}
}
