package e2e

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/proctest"
)

// A rank that is killed ends the run within five seconds, and the launcher names it, not those that missed it.
func TestKilledRankEndsTheRun(t *testing.T) {
	for _, transport := range []string{"p2p", "nats"} {
		t.Run(transport, func(t *testing.T) { killRank(t, 8, "halo.transport="+transport) })
	}
}

// killRank kills one of np ranks while they sweep.
func killRank(t *testing.T, np int, settings ...string) {
	l := begin(t, t.TempDir(), append(set(settings...), "-np", strconv.Itoa(np))...)
	pids := l.allRanks(np)
	killed := time.Now()
	if err := syscall.Kill(pids[np/2], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(killed); took > 5*time.Second {
		t.Errorf("the run ended %v after the kill, want at most 5s", took)
	}
	if code != 1 || !regexp.MustCompile(`rank \d .*killed`).MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and the killed rank named", code, output)
	}
	l.leavesNothing()
}

// The cause of a crash is the line that tells it, and is told once.
func TestCrashedRankIsNamed(t *testing.T) {
	l := begin(t, t.TempDir(), "-np", "3")
	if err := syscall.Kill(l.allRanks(3)[1], syscall.SIGABRT); err != nil { // prints stacks, then registers
		t.Fatal(err)
	}
	code, output := l.end()
	want := regexp.MustCompile(`(?m)^launcher: rank \d on \S+ failed: SIGABRT: abort \(last known sweep: \d+\)$`)
	if code != 1 || len(want.FindAllString(output, -1)) != 1 || strings.Count(output, "launcher: rank") != 1 {
		t.Errorf("exit code %d, output\n%s\nwant 1 and one line %s", code, output, want)
	}
	l.leavesNothing()
}

// A failure is told once, by the launcher, and not by the rank as well.
func TestFailureIsToldOnce(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("halo.timeout=1h", "run.liveness=2s"), "-np", "3")...)
	if err := syscall.Kill(l.allRanks(3)[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 1 || strings.Count(output, " was not heard of for 2s") != 1 {
		t.Errorf("exit code %d, want 1, and the silence told once\n%s", code, output)
	}
}

// A rank that hangs is a clear error in bounded time; those that waited for it are its consequence.
func TestHangingRankEndsTheRun(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("halo.timeout=2s"), "-np", "3")...)
	pids := l.allRanks(3)
	stopped := time.Now()
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(stopped); took > 8*time.Second {
		t.Errorf("the run ended %v after the stop, want at most 2s for the timeout, 5s for the end", took)
	}
	if code != 1 || !regexp.MustCompile(`(waited 2s|within 2s)`).MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and the timeout", code, output)
	}
	l.leavesNothing()
}

// A rank that falls silent for run.liveness is named with its node, what it had done and since when, long before
// halo.timeout.
func TestSilentRankIsNamed(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("halo.timeout=1h", "run.liveness=2s"), "-np", "3")...)
	pids := l.allRanks(3)
	stopped := time.Now()
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(stopped); took > 10*time.Second {
		t.Errorf("the run ended %v after the stop, want at most 2s for the silence, 5s for the end", took)
	}
	want := regexp.MustCompile(`launcher: rank \d on \S+ failed: .*rank \d on \S+ was not heard of for 2s, since ` +
		`\d\d:\d\d:\d\d, when it had done \d+ sweeps: it is dead, stopped or cut off`)
	if code != 1 || !want.MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and %s", code, output, want)
	}
	l.leavesNothing()
}

// A rank that is stopped for less than run.liveness costs time alone.
func TestStoppedRankCostsOnlyTime(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("run.liveness=10s"), "-np", "3")...)
	pids := l.allRanks(3)
	for _, pid := range pids { // rank 0, to which all others listen, is among them
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the fault itself, not a wait for something
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		l.waitFor(`sweeps`) // it goes on
	}
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, output)
	}
}

// The kernel ends the ranks of a launcher that was killed.
func TestKilledLauncherLeavesNoOrphan(t *testing.T) {
	l := begin(t, t.TempDir(), "-np", "3")
	pids := l.allRanks(3)
	var ranks []*proctest.Process
	for _, pid := range pids {
		p, err := proctest.Watch(t, pid)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, p)
	}
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range l.lines { // the pipe ends with the launcher
	}
	_ = l.cmd.Wait() // killed: an error by design
	for _, p := range ranks {
		if err := p.AwaitEnd(5 * time.Second); err != nil {
			t.Errorf("a rank outlives its launcher: %v", err)
		}
	}
}
