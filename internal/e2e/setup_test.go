package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowSource is an expression that takes about 15 µs a point: a minute and more for the mesh of slowKeys. The launcher
// looks at samples of it, the ranks at all points.
func slowSource() string {
	terms := make([]string, 280)
	for k := range terms {
		terms[k] = fmt.Sprintf("sin(%d*x*y)", k+1)
	}
	return strings.Join(terms, "+")
}

// solving are the keys of a problem that multigrid solves.
var solving = set("solver.method=multigrid", "grid.dtype=float64", "problem.preset=dirichlet")

// slowKeys are keys of a problem whose set-up takes minutes, as JSON.
func slowKeys() string {
	return fmt.Sprintf(`"grid.nx": 4001, "grid.ny": 4001, "problem.top": 1, "problem.source": %q`, slowSource())
}

// awaitWork returns once each process has worked for some time since it was first looked at.
func awaitWork(t *testing.T, pids []int) {
	t.Helper()
	begun := map[int]int{}
	for end := time.Now().Add(limit); len(pids) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v do nothing", pids)
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pids[0]))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		ticks, err := strconv.Atoi(fields[11]) // user time, in 1/100 s
		if err != nil {
			t.Fatal(err)
		}
		if _, seen := begun[pids[0]]; !seen {
			begun[pids[0]] = ticks
		}
		if ticks >= begun[pids[0]]+20 {
			pids = pids[1:]
		}
	}
}

// soon is far below the time of the set-up of slowKeys, and enough for a busy machine.
const soon = 20 * time.Second

// A request whose ranks work out its values ends soon after it is cancelled, and after its client is gone. The next
// one is done.
func TestCancelDuringTheSetUp(t *testing.T) {
	t.Parallel()
	c := serve(t, t.TempDir(), slices.Concat(solving, []string{"-np", "2"})...)
	c.ask(`{"id": 0, "keys": {"grid.nx": 33, "grid.ny": 33, "problem.top": 1}}`)
	c.until("end")
	ranks := (&live{t: t, cmd: c.cmd}).allRanks(2)
	c.ask(`{"id": 1, "keys": {%s}}`, slowKeys())
	c.ask(`{"id": 2, "keys": {"grid.nx": 33, "grid.ny": 33, "problem.top": 1}}`)
	awaitWork(t, ranks)
	cancelled := time.Now()
	c.ask(`{"cancel": 1}`)
	if end, _ := c.until("end"); end.End.Error != "the request was cancelled" || end.End.ExitCode != 1 ||
		time.Since(cancelled) > soon {
		t.Errorf("after %v: %+v", time.Since(cancelled), end.End)
	}
	if end, _ := c.until("end"); end.End.ExitCode != 0 || end.End.Verdict != "met" {
		t.Errorf("the next one: %+v", end.End)
	}
	c.ask(`{"id": 3, "keys": {%s}}`, slowKeys())
	awaitWork(t, ranks)
	gone := time.Now()
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.out.Close(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // its exit code says that nobody has read the answer
	if took := time.Since(gone); took > soon {
		t.Errorf("serve ends %v after its client is gone", took)
	}
}

// SIGTERM ends a study, requests and a run soon while their ranks work out values.
func TestSIGTERMDuringTheSetUp(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"study", "serve", "run"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			l := &live{t: t}
			switch how {
			case "serve":
				c := serve(t, dir, slices.Concat(solving, []string{"-np", "2"})...)
				c.ask(`{"id": 0, "keys": {"grid.nx": 33, "grid.ny": 33, "problem.top": 1}}`)
				c.until("end")
				c.ask(`{"id": 1, "keys": {%s}}`, slowKeys())
				l.cmd = c.cmd
				awaitWork(t, l.allRanks(2))
				stopped := time.Now()
				if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				if end, _ := c.until("end"); end.End.Verdict != "not_done" || end.End.ExitCode != 143 {
					t.Errorf("%+v", end.End)
				}
				c.exits(143)
				if took := time.Since(stopped); took > soon {
					t.Errorf("it ends %v later", took)
				}
				return
			case "study":
				writeRuns(t, dir, "{"+slowKeys()+"}")
				l = startLive(t, dir, slices.Concat(studyOf(nil, "--runs", "runs.jsonl", "-np", "2"), solving)...)
			case "run":
				l = startLive(t, dir, slices.Concat(solving, set("grid.nx=4001", "grid.ny=4001", "problem.top=1",
					"problem.source="+slowSource()), []string{"-np", "2"})...)
			}
			for end := time.Now().Add(limit); len(l.ranks()) < 2; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the ranks do not start")
				}
			}
			awaitWork(t, l.ranks())
			stopped := time.Now()
			if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			code, output := l.end()
			if took := time.Since(stopped); code != 143 || took > soon {
				t.Errorf("exit code %d after %v, want 143\n%s", code, took, output)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "out", "*.npy")); err != nil || len(left) > 0 {
				t.Errorf("files %v, %v", left, err)
			}
			l.leavesNothing()
		})
	}
}
