package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/proctest"
)

// pausable has the settings of a run that lasts some seconds. Its timeouts are shorter than the pauses of these tests.
func pausable(sweeps int) []string {
	return set("grid.nx=97", "grid.ny=131", "solver.tolerance=0", "output.field=", "output.picture=",
		"halo.transport=nats", "halo.depth=1", "run.liveness=2s", "halo.timeout=2s",
		fmt.Sprintf("solver.max_iterations=%d", sweeps))
}

// awaitState polls until a process is stopped or is not stopped, because the kernel notifies only its parent.
func awaitState(t *testing.T, pid int, stopped bool) {
	t.Helper()
	state := awake.Watch(pid)
	for end := time.Now().Add(limit); state() != stopped; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d: stopped is %v for %v", pid, !stopped, limit)
		}
	}
}

// A launcher that is stopped by Ctrl-Z or SIGSTOP for longer than all timeouts only delays the run.
func TestStoppedLauncherCostsOnlyTime(t *testing.T) {
	t.Parallel()
	const sweeps = 8000
	want, _ := solve(t, append(pausable(sweeps), "-np", "1")...)
	for _, c := range []struct {
		signal  syscall.Signal
		stopped bool // whether the ranks are stopped, too
	}{{syscall.SIGTSTP, true}, {syscall.SIGSTOP, false}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := startLive(t, dir, append(pausable(sweeps), "-np", "3")...)
			l.waitFor(progress)
			pids := l.allRanks(3)
			if err := l.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			awaitState(t, l.cmd.Process.Pid, true)
			for _, pid := range pids {
				if c.stopped {
					awaitState(t, pid, true)
				}
			}
			time.Sleep(5 * time.Second) // the fault itself
			if now := l.ranks(); !slices.Equal(now, pids) {
				t.Errorf("ranks %v, want %v", now, pids)
			}
			if err := l.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			code, output := l.end()
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, output)
			}
			r := readReport(t, filepath.Join(dir, "out"))
			history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
			if err != nil {
				t.Fatal(err)
			}
			if got := (answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}); got != want {
				t.Errorf("field %s, want %s; histories equal: %v", got.sha, want.sha, got.history == want.history)
			}
			l.leavesNothing()
		})
	}
}

// A launcher that is killed while it is stopped leaves no rank.
func TestEndOfAStoppedLauncher(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		signals []syscall.Signal
		code    int
	}{
		{"terminated", []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, 128 + int(syscall.SIGTERM)},
		{"killed", []syscall.Signal{syscall.SIGKILL}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, t.TempDir(), "-np", "3")
			var ranks []*proctest.Process
			for _, pid := range l.allRanks(3) {
				p, err := proctest.Watch(t, pid)
				if err != nil {
					t.Fatal(err)
				}
				ranks = append(ranks, p)
			}
			if err := l.cmd.Process.Signal(syscall.SIGTSTP); err != nil {
				t.Fatal(err)
			}
			l.waitFor("^launcher: SIGTSTP: the ranks are stopped until the launcher goes on$")
			awaitState(t, l.cmd.Process.Pid, true)
			for _, sig := range c.signals {
				if err := l.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
			if code, output := l.end(); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, output)
			}
			for _, p := range ranks {
				if err := p.AwaitEnd(5 * time.Second); err != nil {
					t.Errorf("a rank outlives its launcher: %v", err)
				}
			}
		})
	}
}

// Ranks of agents are stopped with their launcher, and continue after more silence than an agent normally allows.
func TestStoppedLauncherOfAgents(t *testing.T) {
	t.Parallel()
	const sweeps = 4000
	want, _ := solve(t, append(pausable(sweeps), "-np", "1")...)
	u := startServer(t)
	for range 2 {
		startAgent(t, t.TempDir(), u, "--slots", "1")
	}
	dir := t.TempDir()
	l := startLive(t, dir, onNodes(u, append(pausable(sweeps), "-np", strconv.Itoa(2))...)...)
	l.waitFor(progress)
	if err := l.cmd.Process.Signal(syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	awaitState(t, l.cmd.Process.Pid, true)
	time.Sleep(13 * time.Second) // the fault itself
	if err := l.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	if r := readReport(t, filepath.Join(dir, "out")); r.FieldSHA256 != want.sha {
		t.Errorf("field %s, want %s", r.FieldSHA256, want.sha)
	}
}
