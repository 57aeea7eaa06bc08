package e2e

import (
	"errors"
	"fmt"
	"os"
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

// solving are the arguments of two ranks that solve by multigrid.
var solving = onRanks(2, "solver.method=multigrid", "grid.dtype=float64", "problem.preset=dirichlet", "problem.top=1")

// slowKeys are keys of a problem whose set-up takes minutes, as JSON.
func slowKeys() string {
	return fmt.Sprintf(`"grid.nx": 4001, "grid.ny": 4001, "problem.source": %q`, slowSource())
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
	c, ranks := servingRanks(t)
	c.ask(`{"id": 1, "keys": {%s}}`, slowKeys())
	c.ask(`{"id": 2, "keys": {"grid.nx": 33, "grid.ny": 33}}`)
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
	if err := errors.Join(c.in.Close(), c.out.Close()); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err == nil || time.Since(gone) > soon {
		t.Errorf("serve ends %v after its client is gone: %v", time.Since(gone), err)
	}
}

// servingRanks starts serve, and returns it and its ranks once they have done a request.
func servingRanks(t *testing.T) (*client, []int) {
	t.Helper()
	c := serve(t, t.TempDir(), solving...)
	c.ask(`{"id": 0, "keys": {"grid.nx": 33, "grid.ny": 33}}`)
	c.until("end")
	return c, (&live{t: t, cmd: c.cmd}).allRanks(2)
}

// SIGTERM ends a study and requests soon while their ranks work out values. So it does a run (TestSetupIsInterrupted).
func TestSIGTERMDuringTheSetUp(t *testing.T) {
	t.Parallel()
	t.Run("serve", func(t *testing.T) {
		c, ranks := servingRanks(t)
		c.ask(`{"id": 1, "keys": {%s}}`, slowKeys())
		awaitWork(t, ranks)
		stopped := time.Now()
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if end, _ := c.until("end"); end.End.Verdict != "not_done" || end.End.ExitCode != 143 {
			t.Errorf("%+v", end.End)
		}
		if c.exits(143); time.Since(stopped) > soon {
			t.Errorf("it ends %v later", time.Since(stopped))
		}
	})
	t.Run("study", func(t *testing.T) {
		dir := t.TempDir()
		writeRuns(t, dir, "{"+slowKeys()+"}")
		l := startLive(t, dir, append(studyOf(nil, "--runs", "runs.jsonl"), solving...)...)
		for end := time.Now().Add(limit); len(l.ranks()) < 2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the ranks do not start")
			}
		}
		awaitWork(t, l.ranks())
		stopped := time.Now()
		l.signal(syscall.SIGTERM)
		if l.ends(143); time.Since(stopped) > soon {
			t.Errorf("it ends %v later", time.Since(stopped))
		}
		l.leavesNothing()
	})
}
