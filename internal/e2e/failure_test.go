package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/base/proctest"
)

// A killed rank ends the run within five seconds. The launcher names that rank and not the ranks that lost their
// neighbour.
func TestKilledRankEndsTheRun(t *testing.T) {
	t.Parallel()
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
	if took := time.Since(killed); took > 10*time.Second {
		t.Errorf("the run ended %v after the kill, want at most 10s", took)
	}
	if code != 1 || !regexp.MustCompile(`rank \d .*killed`).MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and the killed rank named", code, output)
	}
	l.leavesNothing()
}

// The launcher reports a crash once, with the line of the rank's output that has the cause.
func TestCrashedRankIsNamed(t *testing.T) {
	l := begin(t, t.TempDir(), "-np", "3")
	if err := syscall.Kill(l.allRanks(3)[1], syscall.SIGABRT); err != nil { // Go prints stacks, then registers
		t.Fatal(err)
	}
	code, output := l.end()
	want := regexp.MustCompile(`(?m)^launcher: rank \d on \S+ failed: SIGABRT: abort \(last known sweep: \d+\)$`)
	if code != 1 || len(want.FindAllString(output, -1)) != 1 || strings.Count(output, "launcher: rank") != 1 {
		t.Errorf("exit code %d, output\n%s\nwant 1 and one line %s", code, output, want)
	}
	l.leavesNothing()
}

// A failure is printed once, by the launcher and not also by the rank.
func TestFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), append(set("halo.timeout=1h", "run.liveness=2s"), "-np", "3")...)
	if err := syscall.Kill(l.allRanks(3)[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 1 || strings.Count(output, " was silent for 2s") != 1 {
		t.Errorf("exit code %d, want 1, and the silence told once\n%s", code, output)
	}
}

// A rank that hangs ends the run in bounded time with an error that names the timeout.
func TestHangingRankEndsTheRun(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), append(set("halo.timeout=2s"), "-np", "3")...)
	pids := l.allRanks(3)
	stopped := time.Now()
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(stopped); took > 20*time.Second {
		t.Errorf("the run ended %v after the stop, want 7s, or 20s on a busy machine", took)
	}
	if code != 1 || !regexp.MustCompile(`(waited 2s|within 2s)`).MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and the timeout", code, output)
	}
	l.leavesNothing()
}

// If a rank is silent for run.liveness, the error has its rank, node, number of sweeps and the time of its last sign,
// long before halo.timeout.
func TestSilentRankIsNamed(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), append(set("halo.timeout=1h", "run.liveness=2s"), "-np", "3")...)
	pids := l.allRanks(3)
	stopped := time.Now()
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(stopped); took > 20*time.Second {
		t.Errorf("the run ended %v after the stop, want 7s, or 20s on a busy machine", took)
	}
	want := regexp.MustCompile(`launcher: rank \d on \S+ failed: .*rank \d on \S+ was silent for 2s, since ` +
		`\d\d:\d\d:\d\d, when it had done \d+ iterations: it is dead, stopped or cut off`)
	if code != 1 || !want.MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and %s", code, output, want)
	}
	l.leavesNothing()
}

// A run whose ranks are all stopped ends with the silence of rank 0, also where it has one rank and where it was asked
// to stop meanwhile, in which case it does not start again.
func TestSilenceOfAllRanksIsNoticed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ranks int
		stop  bool
	}{{1, false}, {1, true}, {3, false}} {
		t.Run(fmt.Sprintf("%d ranks, asked to stop %v", c.ranks, c.stop), func(t *testing.T) {
			t.Parallel()
			args := append(set("halo.timeout=1h", "run.liveness=2s"), "-np", fmt.Sprint(c.ranks))
			if c.stop {
				args = append(args, "--max-restarts", "1")
			}
			l := begin(t, t.TempDir(), args...)
			for _, pid := range l.allRanks(c.ranks) {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			if c.stop {
				if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			code, output := l.end()
			want := regexp.MustCompile(`launcher: rank 0 on \S+ was silent for 2s, since \d\d:\d\d:\d\d, ` +
				`when it had done \d+ iterations: it is dead, stopped or cut off`)
			if code != 1 || !want.MatchString(output) || strings.Contains(output, "restart 1 of 1") {
				t.Errorf("exit code %d, output\n%s\nwant 1 and %s", code, output, want)
			}
			l.leavesNothing()
		})
	}
}

// A rank that is stopped for less than run.liveness only delays the run.
func TestStoppedRankCostsOnlyTime(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), append(set("run.liveness=10s"), "-np", "3")...)
	pids := l.allRanks(3)
	for _, pid := range pids { // including rank 0, whose signs of life all others expect
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the fault itself, not a wait for an event
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		l.waitFor(progress) // the run goes on
	}
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, output)
	}
}

// The kernel kills the ranks of a killed launcher.
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
	for range l.lines { // until the end of the output
	}
	_ = l.cmd.Wait() // always an error: the launcher was killed
	for _, p := range ranks {
		if err := p.AwaitEnd(5 * time.Second); err != nil {
			t.Errorf("a rank outlives its launcher: %v", err)
		}
	}
}
