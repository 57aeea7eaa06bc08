package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/observe/events"
)

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
	out := run(t, dir, "launcher", append(set("grid.nx=200", "grid.ny=300", "solver.max_iterations=400",
		"problem.preset=gtc2019"), "--json", "-np", "3")...)
	if out.code != 0 || !strings.Contains(out.stderr, "Field SHA-256") {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
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
	if iterations != 400 || len(final) != 3 || final[0] != 400 || final[1] != 400 || final[2] != 400 || !warned {
		t.Errorf("%d iterations, %v on ranks; warned %t", iterations, final, warned)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := json.Compact(&file, data); err != nil || file.String() != string(all[n-2].Report) {
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
		{append(set("grid.nx=64", "grid.ny=64"), "--dry-run"), []string{"plan", "end"}, events.End{}},
	} {
		out := run(t, t.TempDir(), "launcher", append(c.args, "--json", "-np", "2")...)
		all, kinds := eventsOf(t, out.stdout)
		if !slices.Equal(kinds, c.kinds) || *all[len(all)-1].End != c.end || out.code != c.end.ExitCode {
			t.Errorf("%q: exit code %d\n%s", c.args, out.code, out.stdout)
		}
	}
}

// A reader that leaves stops the run, which writes what it has.
func TestJSONReaderLeaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `{ "$@"; echo "code $?" >&2; } | sed -n '/"progress"/q'`
	out := run(t, dir, "/bin/sh", append([]string{"-c", script, "sh", bin + "/launcher", "--json", "-np", "2"},
		set(endless...)...)...)
	if !strings.Contains(out.stderr, "code 141\n") ||
		!strings.Contains(out.stderr, "launcher: SIGPIPE: the ranks stop") {
		t.Errorf("%s\nwant code 141", out.stderr)
	}
	if r := readReport(t, filepath.Join(dir, "out")); r.StopReason != "interrupted" || r.Sweeps == 0 {
		t.Errorf("%d sweeps, ended as %s", r.Sweeps, r.StopReason)
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
