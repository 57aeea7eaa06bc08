package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"jacobi/internal/observe/events"
)

// doorProblems are what the doors of this program are given, key=value, and what they all say of it: met, missed, done,
// or why it is refused, and a part of that text or of the only warning.
var doorProblems = []struct {
	verdict, text string
	keys          []string
}{
	{"met", "", []string{"problem.source=sin(pi*x)"}},
	{"met", "", []string{"problem.fixed=x > 0.4 and x < 0.6 and y > 0.4 and y < 0.6", "problem.initial=1"}},
	{"met", "", []string{"problem.coefficient=x < 0.5 ? 1 : 3", "problem.top=1"}},
	{"missed", "", []string{"problem.top=1", "solver.max_iterations=1"}},
	{"missed", "", []string{"problem.top=1", "solver.method=jacobi", "solver.max_iterations=10"}},
	{"done", "", []string{"problem.top=1", "solver.method=jacobi", "solver.max_iterations=10", "solver.tolerance=0"}},
	{"met", "", []string{"problem.left=neumann(0)", "problem.right=neumann(0)", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.screening=1", "problem.source=1"}},
	{"met", `problem.top "1": the coefficient is 0 along the whole side, so its values have no effect`,
		[]string{"problem.coefficient=y < 0.3 ? 0 : 1", "problem.top=1"}},
	{"met", "no side has values, and what flows in", []string{"problem.left=neumann(1)", "problem.right=neumann(0)",
		"problem.top=neumann(0)", "problem.bottom=neumann(0)"}},
	{"refused", "no side has values", []string{"problem.left=periodic", "problem.right=periodic",
		"problem.top=periodic", "problem.bottom=periodic"}},
	{"refused", "problem.left", []string{"problem.left=periodic"}},
	{"refused", "problem.coefficient: no point is free and has a coefficient above 0",
		[]string{"problem.coefficient=x < 2 ? 0 : 1"}},
	{"refused", "problem.source", []string{"problem.top=1",
		"problem.coefficient=hypot(x-0.5, y-0.5) > 0.4 or hypot(x-0.5, y-0.5) < 0.2 ? 1 : 0", "problem.source=1"}},
	{"refused", "problem.fixed", []string{"problem.fixed=x > -1", "problem.initial=7"}},
	{"refused", "problem.coefficient", []string{"problem.coefficient=1e70*x"}},
	{"refused", "problem.top", []string{"problem.top=robin(-1, 0)"}},
	{"refused", "problem.top", []string{"problem.top=sqrt(x-1)"}},
	{"refused", "problem.top", []string{"problem.top=sin("}},
	{"refused", "problem.source", []string{"problem.source=no.npy"}},
	{"refused", "no.png", []string{"problem.drawing=no.png", "problem.colours=#ffffff value=1"}},
	{"refused", "problem: its largest absolute value", []string{"problem.top=1e200"}},
	{"refused", "grid.nx 200000, grid.ny 200000: memory", []string{"problem.top=1", "grid.nx=200000", "grid.ny=200000",
		"solver.method=jacobi"}},
	{"refused", "grid.nx 2", []string{"grid.nx=2", "grid.ny=2", "problem.top=1"}},
	{"refused", "grid.nx", []string{"grid.nx=1__0", "grid.ny=1__0", "problem.top=1"}},
	{"refused", "problem.tpo", []string{"problem.tpo=1"}},
	{"refused", "solver.norm_every", []string{"problem.top=1", "solver.norm_every=2"}},
	{"refused", "output.picture_scale", []string{"problem.top=1", "output.picture_scale=cubic"}},
	{"refused", "output.field", []string{"problem.top=1", "output.field=no/field.npy"}},
}

// said is what a door says of a problem.
type said struct {
	verdict, text string
	code          int
}

// sources are how doors name the source of a key.
var sources = regexp.MustCompile(` \((--set|request|run \d+)\)`)

// gib are figures that change with the number of ranks, and from one moment to the next.
var gib = regexp.MustCompile(`[0-9.]+ GiB are`)

// normal returns what does not depend on the door or on the moment.
func (s said) normal() said {
	s.text = strings.ReplaceAll(sources.ReplaceAllString(s.text, ""), "\n", "; ")
	s.text = gib.ReplaceAllString(s.text, "N GiB are")
	return s
}

// codes are the exit codes of verdicts.
var codes = map[string]int{"met": 0, "done": 0, "missed": 4, "refused": 1}

// A problem has the same verdict, words, warnings and exit code through every door.
func TestDoors(t *testing.T) {
	t.Parallel()
	small := []string{"--set", "device.backend=cpu", "-np", "2"}
	sets := make([][]string, len(doorProblems))
	var documents []string
	for i, p := range doorProblems {
		keys := map[string]any{"grid.nx": 17, "grid.ny": 65, "output.field": "", "output.picture": "",
			"output.history": "", "output.report": ""}
		for _, pair := range p.keys {
			name, text, _ := strings.Cut(pair, "=")
			keys[name] = text
			if _, err := strconv.ParseFloat(text, 64); err == nil {
				keys[name] = json.Number(text)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(keys)) { // faults come in the order of the keys
			sets[i] = append(sets[i], "--set", fmt.Sprintf("%s=%v", name, keys[name]))
		}
		document, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(document))
	}
	launch := func(t *testing.T, dir string, args ...string) outcome {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return finish(t, ctx, plain(command(ctx, dir, "launcher", args...)))
	}
	for _, door := range []struct {
		name string
		all  func(t *testing.T) []said
	}{
		{"run", func(t *testing.T) []said {
			return each(t, sets, func(dir string, keys []string) said {
				out := launch(t, dir, slices.Concat([]string{"--json"}, small, keys)...)
				return ofEvents(t, out)
			})
		}},
		{"dry run", func(t *testing.T) []said {
			return each(t, sets, func(dir string, keys []string) said {
				out := launch(t, dir, slices.Concat([]string{"--json", "--dry-run"}, small, keys)...)
				s := ofEvents(t, out)
				if s.code == 0 && s.text == "" { // nothing is said of a run that would begin
					return said{}
				}
				if s.code == 0 {
					s.verdict = "met" // as every run with a warning here
				}
				return s
			})
		}},
		{"doctor", func(t *testing.T) []said {
			return each(t, sets, func(dir string, keys []string) said {
				out := launch(t, dir, slices.Concat([]string{"doctor", "--json"}, small, keys)...)
				return ofDiagnosis(t, out)
			})
		}},
		{"jacobi-rank", func(t *testing.T) []said {
			return each(t, sets, func(dir string, keys []string) said { return ofRanks(t, dir, keys) })
		}},
		{"mpirun", func(t *testing.T) []said { // takes a second for each problem: one of each verdict
			program := installed(t, "mpirun.openmpi")
			seen := map[string]bool{}
			return each(t, sets, func(dir string, keys []string) (s said) {
				p := doorProblems[slices.IndexFunc(sets, func(set []string) bool { return slices.Equal(set, keys) })]
				if seen[p.verdict] && p.text == "" || len(seen) > 4 {
					return s
				}
				seen[p.verdict+p.text] = true
				return ofRanks(t, dir, keys, program, "--allow-run-as-root", "--oversubscribe", "-np", "2")
			})
		}},
		{"study", func(t *testing.T) (all []said) {
			dir := t.TempDir()
			writeRuns(t, dir, documents...)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			out := finish(t, ctx, plain(command(ctx, dir, "launcher", append([]string{"study", "--runs", "runs.jsonl",
				"--table", "table.jsonl"}, small...)...)))
			for i, l := range studyLines(t, dir) {
				s := said{verdict: l.Verdict, text: l.Reason, code: codes[l.Verdict]}
				if _, warning, found := strings.Cut(out.stderr, fmt.Sprintf("run %d: ", i+1)); found && s.text == "" {
					s.text, _, _ = strings.Cut(warning, "\n")
				}
				all = append(all, s)
			}
			return all
		}},
		{"serve", func(t *testing.T) []said {
			return answersOf(t, serveBy(t, plain(serving(t, t.TempDir(), small...))), documents)
		}},
		{"Python's solve", func(t *testing.T) []said { return pythonSaysOf(t, "", documents) }},
		{"Python's Session", func(t *testing.T) []said { return pythonSaysOf(t, "session", documents) }},
	} {
		t.Run(door.name, func(t *testing.T) {
			t.Parallel()
			all := door.all(t)
			if len(all) != len(doorProblems) {
				t.Fatalf("%d answers to %d problems", len(all), len(doorProblems))
			}
			for i, p := range doorProblems {
				if all[i].verdict == "" { // the door has no such key
					continue
				}
				got := all[i].normal()
				if got.verdict != p.verdict || got.code != codes[p.verdict] || !strings.Contains(got.text, p.text) ||
					(p.text == "") != (got.text == "") {
					t.Errorf("%v: %+v, want %s: %s", p.keys, got, p.verdict, p.text)
				}
				agreed.same(t, i, door.name, got)
			}
		})
	}
}

// pythonSaysOf returns what the Python package says of problems: each on ranks of its own, or all on those of a
// session. It names the file of the field itself, for which there may be no room, either.
func pythonSaysOf(t *testing.T, session string, documents []string) (all []said) {
	t.Helper()
	const script = `import json, sys, warnings, jacobisolver
start = {"keys": {"device.backend": "cpu"}, "ranks": 2}
s = jacobisolver.Session(**start) if sys.argv[1] else None
for line in sys.stdin:
    keys = json.loads(line)
    if keys.pop("output.field"):
        print(json.dumps(["", "", 0]))
        continue
    problem = jacobisolver.Problem(keys=keys)
    text = ""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            if s:
                r = s.solve(problem)
            else:
                r = jacobisolver.solve(problem, start=start["keys"], ranks=2)
            verdict = r.verdict
        except jacobisolver.SolveError as e:
            verdict, text = "refused", str(e)
    text = "; ".join([str(w.message) for w in seen if w.category is jacobisolver.JacobiWarning] + [text] * (text != ""))
    missed = any(w.category is jacobisolver.ToleranceWarning for w in seen)
    print(json.dumps([verdict, text, 4 if missed else 1 if verdict == "refused" else 0]))
`
	ctx, cmd := python(t, []string{"numpy"}, "-c", script, session)
	cmd = plain(cmd)
	cmd.Env = append(cmd.Env, "JACOBI_LAUNCHER="+filepath.Join(bin, "launcher"))
	cmd.Stdin = strings.NewReader(strings.Join(documents, "\n"))
	out := finish(t, ctx, cmd)
	for line := range strings.Lines(out.stdout) {
		var s said
		if err := json.Unmarshal([]byte(line), &[]any{&s.verdict, &s.text, &s.code}); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		s.text, _, _ = strings.Cut(s.text, "\noutput.dir ")
		all = append(all, s)
	}
	if out.code != 0 {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
	return all
}

// agreement is what the doors have said so far.
type agreement struct {
	mu   sync.Mutex
	door map[int]string
	said map[int]said
}

var agreed = agreement{door: map[int]string{}, said: map[int]said{}}

// same checks that a door says of a problem what another one has said.
func (a *agreement) same(t *testing.T, problem int, door string, s said) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if first, known := a.said[problem]; !known {
		a.door[problem], a.said[problem] = door, s
	} else if first != s {
		t.Errorf("%v:\n%s says %+v,\n%s says %+v", doorProblems[problem].keys, a.door[problem], first, door, s)
	}
}

// plain has a command without keys in its environment.
func plain(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "JACOBI_") })
	return cmd
}

// each gives a door one problem after the other, in a directory of its own.
func each(t *testing.T, sets [][]string, open func(dir string, keys []string) said) (all []said) {
	t.Helper()
	for _, keys := range sets {
		all = append(all, open(t.TempDir(), keys))
	}
	return all
}

// ofEvents returns what the events of a run say.
func ofEvents(t *testing.T, out outcome) said {
	t.Helper()
	s := said{code: out.code}
	all, _ := eventsOf(t, out.stdout)
	for _, e := range all {
		s.hear(e)
	}
	return s
}

// ofDiagnosis returns what doctor says of a run that would not start, or of which it warns.
func ofDiagnosis(t *testing.T, out outcome) said {
	t.Helper()
	d := parseDiagnosis(t, out)
	var faults []string
	for _, f := range d.Faults {
		faults = append(faults, f.What)
	}
	switch {
	case faults != nil:
		return said{"refused", strings.Join(faults, "\n"), out.code}
	case len(d.Warnings) > 0:
		return said{"met", d.Warnings[0].What, out.code}
	}
	return said{}
}

// hear notes what an event says.
func (s *said) hear(e events.Event) {
	switch {
	case e.Message != nil && e.Message.Level == "warn":
		s.text = e.Message.Text
	case e.End != nil:
		s.code = e.End.ExitCode
		if s.verdict = e.End.Verdict; s.verdict == "" {
			s.verdict = "refused"
		}
		if e.End.Error != "" {
			s.text = e.End.Error
		}
	}
}

// ofRanks returns what a rank alone says, or those that the words of another command start.
func ofRanks(t *testing.T, dir string, keys []string, words ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := plain(command(ctx, dir, "jacobi-rank", append(keys, set("device.backend=cpu", "log.format=json",
		"log.level=warn", "output.report=report.json")...)...))
	if len(words) > 0 {
		cmd = through(t, cmd, words...)
	}
	out := finish(t, ctx, cmd)
	s := said{code: out.code, verdict: "refused"}
	if out.code != 1 {
		s.verdict = readReport(t, filepath.Join(dir, "out")).Verdict
	}
	for line := range bytes.Lines([]byte(out.stderr)) {
		var l struct{ Msg string }
		if json.Unmarshal(line, &l) == nil { // mpirun has lines of its own
			s.text = l.Msg
		}
	}
	return s
}

// answersOf asks for all problems at once, and returns the answers in their order.
func answersOf(t *testing.T, c *client, documents []string) []said {
	t.Helper()
	all := make([]said, len(documents))
	go func() {
		for i, d := range documents {
			c.ask(`{"id": %d, "keys": %s}`, i, d)
		}
	}()
	for range documents {
		for c.lines.Scan() {
			var line served
			if err := json.Unmarshal(c.lines.Bytes(), &line); err != nil {
				t.Fatalf("%v: %s", err, c.lines.Bytes())
			}
			var i int
			if err := json.Unmarshal(line.ID, &i); err != nil {
				t.Fatalf("%v: %s", err, c.lines.Bytes())
			}
			all[i].hear(line.Event)
			if line.Event.Event == "end" {
				break
			}
		}
	}
	if c.cmd != nil {
		_ = c.in.Close()
		c.exits(0)
	}
	return all
}
