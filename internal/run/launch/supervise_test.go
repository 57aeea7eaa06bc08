package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/proctest"
	"jacobi/internal/net/roster"
)

func TestRunGivesRanksTheirIdentity(t *testing.T) {
	tr := newTrial("identity", "identity")
	tr.report()
	out := tr.run(t, nil)
	wantOutcome(t, out, ExitOK, "")
	if string(out.Report) != `{"sweeps":10}` {
		t.Errorf("report %q", out.Report)
	}
	slices.Sort(tr.lines)
	for r, line := range tr.lines {
		want := fmt.Sprintf("[%d]<stdout> JACOBI_RUN_ID=0123456789abcdef0123456789abcdef JACOBI_RANK=%d JACOBI_SIZE=2 "+
			"JACOBI_LOCAL_RANK=%d JACOBI_LOCAL_SIZE=2 extra", r, r, r)
		if line != want {
			t.Errorf("rank %d says %q\nwant %q", r, line, want)
		}
	}
	if len(tr.lines) != 2 || len(tr.said) != 0 || len(tr.aborts) != 0 {
		t.Errorf("lines %q, announcements %q, aborts %v", tr.lines, tr.said, tr.aborts)
	}
}

func TestRunAbortsTheOthersAfterAKilledRank(t *testing.T) {
	t.Parallel()
	tr := newTrial("follows", "follows", "obeys")
	out := tr.run(t, func(pids map[int]int) {
		tr.events <- roster.Event{Kind: roster.Progress, Sweeps: 513, Step: "cycle"}
		<-tr.known
		_ = syscall.Kill(pids[1], syscall.SIGKILL)
	})
	wantOutcome(t, out, ExitFailed, "rank 1 on here "+byKill+" (last known cycle: 512)")
	for _, line := range tr.lines {
		if strings.Contains(line, "<stderr>") {
			t.Errorf("a consequence is shown: %s", line)
		}
	}
	want := []roster.AbortError{{Rank: 1, Host: "here", Cause: byKill}}
	if !slices.Equal(tr.aborts, want) {
		t.Errorf("told %v, want %v", tr.aborts, want)
	}
}

func TestRunNamesTheRankThatDoesNotStart(t *testing.T) {
	tr := newTrial("good", "good")
	tr.job.Path = "/nowhere/jacobi-rank"
	_, err := tr.job.Run(t.Context())
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(),
		"start rank 0: fork/exec /nowhere/jacobi-rank") {
		t.Errorf("error %v", err)
	}
}

func TestRanksHaveProcessGroupsOfTheirOwn(t *testing.T) {
	tr := newTrial("obeys", "obeys")
	tr.report()
	tr.run(t, func(pids map[int]int) {
		for rank, pid := range pids {
			if pgid, err := syscall.Getpgid(pid); pgid != pid {
				t.Errorf("rank %d, process %d: process group %d, error %v", rank, pid, pgid, err)
			}
		}
		tr.signals <- syscall.SIGTERM
	})
}

func TestRanksDieWithAKilledLauncher(t *testing.T) {
	launcher := exec.Command(os.Args[0])
	launcher.Env = append(os.Environ(), envFakeLauncher+"=1", envFake+"=deaf;deaf;deaf")
	stdout, err := launcher.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	var ranks []*proctest.Process
	for lines := bufio.NewScanner(stdout); len(ranks) < 3 && lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "ready ")
		if !ok {
			t.Fatalf("the launcher says %q", lines.Text())
		}
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := proctest.Watch(t, pid)
		if err != nil {
			t.Fatalf("rank: %v", err)
		}
		ranks = append(ranks, p)
	}
	if len(ranks) != 3 {
		t.Fatalf("%d ranks are ready, want 3", len(ranks))
	}
	if err := launcher.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = launcher.Wait()
	for _, p := range ranks {
		if err := p.AwaitEnd(10 * time.Second); err != nil {
			t.Errorf("a rank outlives the launcher: %v", err)
		}
	}
}

// A tolerance that was not met is no failure: no rank is to blame, the last lines of all are shown, and the run does
// not start again. What ended the run early wins.
func TestRunAboveItsTolerance(t *testing.T) {
	tr := newTrial("above", "above")
	tr.report()
	out := tr.run(t, nil)
	wantOutcome(t, out, ExitMissed, "")
	slices.Sort(tr.lines)
	want := []string{"[0]<stderr> jacobi-rank: closing words", "[1]<stderr> jacobi-rank: closing words"}
	if out.MayRestart() || len(tr.aborts) != 0 || !slices.Equal(tr.lines, want) {
		t.Errorf("lines %q, aborts %v, restart %t", tr.lines, tr.aborts, out.MayRestart())
	}
	wantOutcome(t, Outcome{missed: true, stopped: true, timedOut: true}, ExitTimeout, "")
	wantOutcome(t, Outcome{missed: true, stopped: true, signal: syscall.SIGTERM}, 143, "")
}

// A failed run is restarted if that may help, but never after it was told to stop.
func TestMayRestart(t *testing.T) {
	for _, c := range []struct {
		name string
		out  Outcome
		want bool
	}{
		{"ended well", Outcome{}, false},
		{"killed", Outcome{Err: &RankError{Died: true}}, true},
		{"hung or cut off", Outcome{Err: &RankError{Consequence: true}}, true},
		{"failed while it swept", Outcome{Err: &RankError{Sweeps: 1}}, true},
		{"failed before", Outcome{Err: &RankError{}}, false},
		{"no rank's failure", Outcome{Err: errors.New("x")}, false},
		{"stopped", Outcome{Err: &RankError{Died: true}, signal: syscall.SIGINT}, false},
		{"out of time", Outcome{Err: &RankError{Died: true}, timedOut: true}, false},
	} {
		if got := c.out.MayRestart(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// The outcome distinguishes a rank that died from one that failed, and names the lost hosts.
func TestRunDistinguishesDeathFromFailure(t *testing.T) {
	tr := newTrial("obeys", "deaf")
	out := tr.run(t, func(pids map[int]int) { _ = syscall.Kill(pids[1], syscall.SIGKILL) })
	f, ok := errors.AsType[*RankError](out.Err)
	if !ok || !f.Died || f.Rank != 1 || !out.MayRestart() || out.LostHosts != nil {
		t.Errorf("%+v, %+v", out, f)
	}
	s := &supervisor{Job: &Job{Ranks: []Placement{{Rank: 0, Host: "a"}, {Rank: 1, Host: "b"}, {Rank: 2, Host: "b"}},
		Say: func(string) {}},
		ranks: &processes{ended: make([]bool, 3)}, sent: map[syscall.Signal]bool{}}
	for _, e := range []Exit{{Rank: 1, Lost: "silent"}, {Rank: 2, Lost: "silent"}, {Rank: 0, Code: RankConsequence}} {
		s.ended(t.Context(), e)
	}
	s.event(t.Context(), roster.Event{})
	f, ok = errors.AsType[*RankError](s.firstCause())
	if !ok || !f.Died || len(s.out.LostHosts) != 1 || s.out.LostHosts[0] != "b" {
		t.Errorf("%+v, lost %v", f, s.out.LostHosts)
	}
}

// silence is what a watch over ranks delivers of a rank.
func silence(rank int) *roster.SilentError {
	return &roster.SilentError{Rank: rank, Host: "here", Limit: 10 * time.Second, Since: time.Unix(0, 0), Sweeps: 4}
}

// A rank that is stopped cannot end by itself. Once its silence is noticed, it is killed, and it is the cause.
func TestSilentRankIsKilled(t *testing.T) {
	silent := make(chan *roster.SilentError, 1)
	tr := newTrial("obeys")
	tr.job.Silent, tr.job.FailGrace = silent, 100*time.Millisecond
	out := tr.run(t, func(pids map[int]int) {
		if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil || !becomes(pids[0], true) {
			t.Errorf("the rank is not stopped: %v", err)
		}
		silent <- silence(0)
	})
	wantOutcome(t, out, ExitFailed, "rank 0 on here "+silence(0).Words()+" (last known sweep: none)")
	if !out.MayRestart() {
		t.Error("it may not start again")
	}
}

// A rank that has only to end, or has ended, sends no heartbeats, and that is no failure.
func TestSilenceAfterTheReportIsNoFailure(t *testing.T) {
	silent := make(chan *roster.SilentError)
	tr := newTrial("obeys", "obeys")
	tr.job.Silent = silent
	tr.report()
	out := tr.run(t, func(map[int]int) {
		tr.events <- finished("met")
		<-tr.known
		silent <- silence(0)
		tr.signals <- syscall.SIGTERM // ends the ranks
	})
	if out.Err != nil || out.Report == nil {
		t.Errorf("%v, report %s", out.Err, out.Report)
	}
}

// heldHost is a host whose rank 0 ends well. Rank 1 ends when it is killed, unless the kernel holds it.
type heldHost struct {
	sink   Sink
	kernel bool
}

func (h *heldHost) Start(_ context.Context, _ Spec, sink Sink) error {
	h.sink = sink
	sink.Exit(Exit{Rank: 0})
	return nil
}

func (h *heldHost) Signal(s syscall.Signal) {
	if s == syscall.SIGKILL && !h.kernel {
		h.sink.Exit(Exit{Rank: 1, Signal: s})
	}
}

func (h *heldHost) Suspend(context.Context) {}
func (h *heldHost) Close() error            { return nil }

// The first signal ends the wait for ranks that have only to end.
func TestSignalEndsTheWaitForTheLastRank(t *testing.T) {
	t.Parallel()
	tr := newTrial("", "")
	tr.job.Hosts = map[string]Host{"here": &heldHost{}}
	c, err := startRanks(t.Context(), &tr.job)
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{Job: &tr.job, ranks: c, sent: map[syscall.Signal]bool{}}
	s.ended(t.Context(), <-c.exits)
	s.signalled(t.Context(), syscall.SIGTERM)
	s.watch(t.Context())
	wantOutcome(t, s.out, ExitOK, "")
	if want := []string{"SIGTERM: killing the ranks"}; !slices.Equal(tr.said, want) || s.out.Killed() {
		t.Errorf("said %q, want %q; killed %v", tr.said, want, s.out.Killed())
	}
}

// A process that outlives SIGKILL is named and left behind.
func TestRunLeavesAProcessThatTheKernelHolds(t *testing.T) {
	t.Parallel()
	tr := newTrial("", "")
	tr.job.Hosts = map[string]Host{"here": &heldHost{kernel: true}}
	tr.job.EndGrace, tr.job.KillGrace = 10*time.Millisecond, 10*time.Millisecond
	wantOutcome(t, tr.run(t, nil), ExitOK, "")
	want := []string{
		"rank 1 did not end within 10ms of the other ranks: killed; the run was complete",
		"rank 1 did not end within 10ms of SIGKILL: left behind; the kernel holds a process that waits for a broken " +
			"disk or device",
	}
	if !slices.Equal(tr.said, want) {
		t.Errorf("said %q, want %q", tr.said, want)
	}
}

// A rank that dies once all outputs are in place is named. The run counts as the report says, whichever becomes known
// first.
func TestRunIsCompleteAlthoughARankDiesAtItsEnd(t *testing.T) {
	died := Exit{Rank: 1, Signal: syscall.SIGKILL}
	report := finished(configs.Missed)
	for _, reportFirst := range []bool{true, false} {
		tr := newTrial("", "", "")
		s := &supervisor{Job: &tr.job, ranks: &processes{ended: make([]bool, 3)}, sent: map[syscall.Signal]bool{}}
		if reportFirst {
			s.event(t.Context(), report)
			s.ended(t.Context(), died)
		} else {
			s.ended(t.Context(), died)
			s.event(t.Context(), report)
		}
		s.event(t.Context(), roster.Event{Kind: roster.Aborted, Rank: 0, Consequence: true})
		s.ended(t.Context(), Exit{Rank: 0, Code: RankConsequence})
		s.ended(t.Context(), Exit{Rank: 2, Code: ExitMissed})
		s.conclude()
		wantOutcome(t, s.out, ExitMissed, "")
		want := []string{"rank 1 on here " + byKill + "; the run was complete"}
		if !slices.Equal(tr.said, want) {
			t.Errorf("report first %v: said %q, want %q", reportFirst, tr.said, want)
		}
	}
}

// A rank that fails after another one has ended well does no harm either, if the report was lost.
func TestRunIsCompleteOnceARankHasEndedWell(t *testing.T) {
	tr := newTrial("", "")
	s := &supervisor{Job: &tr.job, ranks: &processes{ended: make([]bool, 2)}, sent: map[syscall.Signal]bool{}}
	s.ended(t.Context(), Exit{Rank: 0, Code: ExitMissed})
	s.ended(t.Context(), Exit{Rank: 1, Code: 1, Said: "disk on fire"})
	s.conclude()
	wantOutcome(t, s.out, ExitMissed, "")
	want := []string{"rank 1 on here failed: disk on fire; the run was complete"}
	if !slices.Equal(tr.said, want) {
		t.Errorf("said %q, want %q", tr.said, want)
	}
}
