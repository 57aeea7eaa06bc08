package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/proctest"
	"jacobi/internal/net/roster/rostertest"
)

// awaitName waits until dir, which must exist, has an entry that match accepts, or l has ended.
func awaitName(t *testing.T, dir string, match func(name string) bool, l *live) {
	t.Helper()
	w := watched(t, dir)
	defer w.Close() // it may be called often
	late := time.After(limit)
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return match(e.Name()) }) {
			return
		}
		select {
		case <-w.Events:
		case <-l.quiet:
			return
		case err := <-w.Errors:
			t.Fatal(err)
		case <-late:
			t.Fatalf("no matching entry appears in %s", dir)
		}
	}
}

// isCheckpoint reports whether name is the name of a sealed checkpoint.
func isCheckpoint(name string) bool { return strings.HasPrefix(name, "sweep-") }

// lasting is the problem of a run that lasts a second or more, since rows travel after each sweep.
var lasting = []string{"grid.nx=130", "grid.ny=270", "solver.tolerance=0", "solver.max_iterations=4000",
	"output.field=", "output.picture=", "halo.depth=1"}

// With --max-restarts a run survives a killed rank. It has the same bits and repeats at most the sweeps since the
// checkpoint. A run that loses a host is in hosts_test.go.
func TestKilledRankIsRestarted(t *testing.T) {
	t.Parallel()
	want, _ := solve(t, onRanks(1, lasting...)...)
	for transport, np := range map[string]int{"p2p": 4, "nats": 3} {
		t.Run(transport, func(t *testing.T) {
			dir := t.TempDir()
			checkpoints := filepath.Join(dir, "checkpoints")
			if err := os.Mkdir(checkpoints, 0o777); err != nil {
				t.Fatal(err)
			}
			l := startLive(t, dir, append(onRanks(np, with(lasting, "checkpoint.every=200",
				"checkpoint.dir=checkpoints", "halo.transport="+transport)...), "--max-restarts", "1")...)
			awaitName(t, checkpoints, isCheckpoint, l)
			kill(t, l.allRanks(np)[2])
			restart := regexp.MustCompile(`launcher: rank \d on \S+ was killed by SIGKILL .*\nlauncher: restart 1 of ` +
				`1: on after sweep (\d+), from checkpoints\n`)
			m := restart.FindStringSubmatch(l.ends(0))
			if m == nil {
				t.Fatal("no restart")
			}
			l.leavesNothing()
			got, r := answerIn(t, filepath.Join(dir, "out"))
			same(t, got, want, transport)
			if sweep, _ := strconv.Atoi(m[1]); r.ResumedAfter != sweep+1 { // digits
				t.Errorf("resumed after %d sweeps, want %d", r.ResumedAfter, sweep+1)
			}
		})
	}
}

// Before the first checkpoint a restart begins at the first sweep. When no restart is left, the run ends with the
// error.
func TestRestartsAreCounted(t *testing.T) {
	dir := t.TempDir()
	l := startLive(t, dir, append(set(endless...), "-np", "3", "--max-restarts", "2")...)
	for i := range 3 {
		if i > 0 {
			l.waitFor(fmt.Sprintf(`launcher: restart %d of 2: from the start, there is no checkpoint yet`, i))
		}
		l.waitFor(`\d of [a-z ]*\d+ sweeps`)
		kill(t, l.ranks()[0])
	}
	l.ends(1, `launcher: rank \d on \S+ was killed by SIGKILL[^\n]*\n$`)
	l.leavesNothing()
}

// Nodes without a shared file system keep checkpoints in a JetStream bucket.
func TestRestartFromABucket(t *testing.T) {
	t.Parallel()
	want, _ := solve(t, onRanks(1, lasting...)...)
	srv := rostertest.StartWith(t, server.Options{JetStream: true, StoreDir: t.TempDir()})
	place := []string{"nats.url=" + srv.URL(), "halo.transport=nats", "checkpoint.every=200", "checkpoint.nats=jacobi"}
	stored, err := srv.Dial().SubscribeSync("$O.jacobi.M.>") // a message for each object that is complete
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := startLive(t, dir, append(onRanks(3, with(lasting, place...)...), "--max-restarts", "1")...)
	for sealed := false; !sealed; {
		m, err := stored.NextMsg(limit)
		if err != nil {
			t.Fatal(err)
		}
		var object struct{ Name string }
		if err := json.Unmarshal(m.Data, &object); err != nil {
			t.Fatal(err)
		}
		sealed = strings.HasSuffix(object.Name, "/manifest.json")
	}
	kill(t, l.ranks()[1])
	l.ends(0, `launcher: restart 1 of 1: on after sweep \d+, from nats:jacobi\n`)
	if got, r := answerIn(t, filepath.Join(dir, "out")); got.sha != want.sha || r.ResumedAfter == 0 {
		t.Errorf("field %s, want %s; resumed after %d sweeps", got.sha, want.sha, r.ResumedAfter)
	}
	got, r := solve(t, append(onRanks(2, with(lasting, place...)...), "--restart")...)
	if same(t, got, want, "--restart"); r.ResumedAfter == 0 {
		t.Error("--restart: it began anew")
	}
}

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
			l.signal(c.signal)
			awaitState(t, l.cmd.Process.Pid, true)
			for _, pid := range pids {
				if c.stopped {
					awaitState(t, pid, true)
				}
			}
			time.Sleep(3 * time.Second) // the fault itself
			if now := l.ranks(); !slices.Equal(now, pids) {
				t.Errorf("ranks %v, want %v", now, pids)
			}
			l.signal(syscall.SIGCONT)
			l.ends(0)
			got, _ := answerIn(t, filepath.Join(dir, "out"))
			same(t, got, want, c.signal)
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
			l.signal(syscall.SIGTSTP)
			l.waitFor("^launcher: SIGTSTP: the ranks are stopped until the launcher goes on$")
			awaitState(t, l.cmd.Process.Pid, true)
			for _, sig := range c.signals {
				l.signal(sig)
			}
			l.ends(c.code)
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
	l := startLive(t, dir, onNodes(u, append(pausable(sweeps), "-np", "2")...)...)
	l.waitFor(progress)
	l.signal(syscall.SIGTSTP)
	awaitState(t, l.cmd.Process.Pid, true)
	time.Sleep(13 * time.Second) // the fault itself
	l.signal(syscall.SIGCONT)
	l.ends(0)
	got, _ := answerIn(t, filepath.Join(dir, "out"))
	same(t, got, want, "agents")
}
