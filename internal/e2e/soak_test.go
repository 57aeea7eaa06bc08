package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/tools/soak"
)

// soaked runs launcher soak --json and returns its events.
func soaked(t *testing.T, args ...string) (outcome, []soak.Event) {
	t.Helper()
	dir := t.TempDir()
	out := run(t, dir, "launcher", append([]string{"soak", "--json"}, args...)...)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	return out, soakEvents(t, out)
}

// soakEvents returns the events in the output of launcher soak --json.
func soakEvents(t *testing.T, out outcome) (events []soak.Event) {
	t.Helper()
	for line := range strings.Lines(out.stdout) {
		var e soak.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q\n%s", err, line, out.stderr)
		}
		events = append(events, e)
	}
	return events
}

// The reference of a soak is the field of a run. Every rank alone and all ranks together have its bits.
func TestSoak(t *testing.T) {
	mesh := set("grid.nx=130", "grid.ny=97", "grid.dtype=float64", "solver.max_iterations=60", "solver.tolerance=0")
	for _, ranks := range []int{1, 3} {
		out, events := soaked(t, append(mesh, "-np", fmt.Sprint(ranks), "--for", "1ms")...)
		if out.code != 0 {
			t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
		}
		want, _ := solve(t, append(mesh, "-np", "2")...)
		if r := events[0].Reference; r == nil || r.FieldHash != want.sha || r.Sweeps != 60 {
			t.Errorf("%d ranks: the first event is %+v, want the field of a run, %s", ranks, events[0], want.sha)
		}
		steps := events[1 : len(events)-1]
		for i, e := range steps {
			kind, round, rows := soak.Alone, i+1, 95*ranks
			if ranks > 1 {
				round = i/2 + 1
			}
			if ranks > 1 && i%2 == 1 {
				kind, rows = soak.Ring, 95
			}
			compared := 0
			for _, r := range e.Step.Ranks {
				compared += r.Rows
			}
			if e.Step.Kind != kind || e.Step.Round != round || compared != rows || len(e.Step.Ranks) != ranks {
				t.Errorf("%d ranks: step %d is %+v, want %s of round %d with %d rows compared", ranks, i, e.Step, kind,
					round, rows)
			}
		}
		end := events[len(events)-1].End
		sweeps, rows := 60*len(steps), 95*len(steps)
		if ranks == 3 {
			alone := (len(steps) + 1) / 2
			sweeps, rows = 60*(3*alone+len(steps)/2), 95*(3*alone+len(steps)/2)
		}
		if end == nil || end.Differing != 0 || end.Steps != len(steps) || end.Sweeps != int64(sweeps) ||
			end.Bits != int64(rows*130*64) || end.Rounds < 1 {
			t.Errorf("%d ranks: the total is %+v after %d steps, want %d sweeps", ranks, end, len(steps), sweeps)
		}
	}
}

// A wrong bit in the field of one rank is found in the round in which it appears, and named with its device and the
// rows that it has reached: 4 sweeps spread it by 4 rows.
func TestSoakNamesTheDeviceAndTheRows(t *testing.T) {
	args := append(set("grid.nx=130", "grid.ny=97", "solver.max_iterations=4", "device.threads=1"), "-np", "3",
		"--flip-bit", "rank=1,round=2,row=50", "--stop-on-error", "--for", "2m")
	out := run(t, t.TempDir(), "launcher", append([]string{"soak"}, args...)...)
	found := regexp.MustCompile(`(?m)^launcher: round 2, alone: WRONG BITS in rows 46-54 \(9 of 95\) of rank 1 on `+
		`\S+: cpu \w+, 1 thread$`).FindAllString(out.stderr, -1)
	total := regexp.MustCompile(`^1 round of 3 devices: 3 steps and 28 sweeps in \S+, 2,766,400 bits compared; ` +
		`WRONG BITS in 1 result\n$`)
	if out.code != 1 || len(found) != 1 || !total.MatchString(out.stdout) {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// Without --stop-on-error a soak goes on after a wrong bit, and every later round is right.
func TestSoakGoesOnAfterAWrongBit(t *testing.T) {
	out, events := soaked(t, append(onRanks(3, "grid.nx=130", "grid.ny=97", "solver.max_iterations=4"),
		"--flip-bit", "rank=1,round=1,row=50", "--for", "100ms")...)
	end := events[len(events)-1].End
	if out.code != 1 || end == nil || end.Differing != 1 || end.Rounds < 2 || len(end.Differences) != 1 {
		t.Fatalf("exit code %d, %+v\n%s", out.code, end, out.stderr)
	}
	if d := end.Differences[0]; d.Rank != 1 || d.Round != 1 || d.Kind != soak.Alone || d.Of != 95 ||
		!slices.Equal(d.Rows, []soak.Range{{Lo: 46, Hi: 55}}) {
		t.Errorf("found %+v", d)
	}
}

// Ctrl-C ends a soak after the step, and a rank that dies ends it with an error that names it. What was compared before
// is summed up.
func TestSoakThatEndsEarlySumsUp(t *testing.T) {
	for name, end := range map[string]func(*live) string{
		"interrupt": func(l *live) string { l.signal(os.Interrupt); return l.ends(130) },
		"killed rank": func(l *live) string {
			kill(l.t, l.ranks()[1])
			return l.ends(1, `(?m)^launcher: rank [01] on \S+ was killed by SIGKILL`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := startLive(t, t.TempDir(), append(set("grid.nx=512", "grid.ny=512"), "soak", "-np", "2", "--for",
				"1h")...)
			l.waitFor(`round 1, alone: 2 of 2 devices agree`)
			if output := end(l); !strings.Contains(output, "bits compared, none differs\n") {
				t.Errorf("no sum in\n%s", output)
			}
			l.leavesNothing()
		})
	}
}

func TestSoakRefusesBadInput(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--for", "0s"}, "--for 0s: must be a positive duration, as in 10m"},
		{[]string{"--flip-bit", "rank=2,round=1,row=5"},
			`--flip-bit "rank=2,round=1,row=5": allowed are ranks 0 to 1 and rows 1 to 98`},
		{set("solver.method=multigrid"), `solver.method "multigrid": soak sweeps by Jacobi's iteration; allowed here ` +
			`is jacobi`},
	} {
		out := run(t, dir, "launcher", slices.Concat([]string{"soak"}, onRanks(2, "grid.nx=100", "grid.ny=100"),
			test.args)...)
		if want := "launcher: " + test.want + "\n"; out.code != 1 || out.stderr != want || out.stdout != "" {
			t.Errorf("%v: exit code %d\n%s%swant %s", test.args, out.code, out.stdout, out.stderr, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); !os.IsNotExist(err) {
		t.Errorf("output.dir was made: %v", err)
	}
}
