package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/proctest"
	"jacobi/internal/net/roster"
)

// trial runs fake ranks and records what a launcher would see.
type trial struct {
	job     Job
	events  chan roster.Event
	signals chan os.Signal
	pids    chan map[int]int // delivers the process id of each rank once all are ready

	reports bool // rank 0 publishes its report before it ends well

	mu     sync.Mutex
	lines  []string
	said   []string
	aborts []roster.AbortError
}

// newTrial prepares one rank for each entry of ranks, the rank's behaviour (see fakeRank).
func newTrial(ranks ...string) *trial {
	tr := &trial{
		events:  make(chan roster.Event, 16),
		signals: make(chan os.Signal, 16),
		pids:    make(chan map[int]int, 1),
	}
	ready := map[int]int{}
	tr.job = Job{
		Path:  os.Args[0],
		Env:   append(os.Environ(), envFake+"="+strings.Join(ranks, ";"), "EXTRA=extra"),
		RunID: "0123456789abcdef0123456789abcdef",
		Ranks: OneHost("here", len(ranks)),
		Output: func(rank int, s Stream, line []byte) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			if verdict, ok := strings.CutPrefix(string(line), "done "); ok {
				if rank == 0 && tr.reports {
					tr.events <- finished(configs.Verdict(verdict))
				}
				return
			}
			tr.lines = append(tr.lines, strings.TrimSuffix(string(TagStream.Append(nil, rank, s, line)), "\n"))
			if pid, ok := strings.CutPrefix(string(line), "ready "); ok {
				ready[rank], _ = strconv.Atoi(pid)
				if len(ready) == len(ranks) {
					tr.pids <- ready
				}
			}
		},
		Say:     func(text string) { tr.said = append(tr.said, text) },
		Events:  tr.events,
		Signals: tr.signals,
		Abort: func(_ context.Context, e roster.AbortError) error {
			tr.aborts = append(tr.aborts, e)
			return nil
		},
		FailGrace: time.Minute,
		StopGrace: time.Minute,
		EndGrace:  time.Minute,
		KillGrace: time.Minute,
	}
	return tr
}

// report makes rank 0 send a report before it ends well.
func (tr *trial) report() { tr.reports = true }

// finished is the event with which rank 0 sends the report of a run.
func finished(verdict configs.Verdict) roster.Event {
	return roster.Event{Kind: roster.Finished, Sweeps: 10, Verdict: string(verdict),
		Report: json.RawMessage(`{"sweeps":10}`)}
}

// run runs the ranks. It calls when, if that is not nil, once all are ready.
func (tr *trial) run(t *testing.T, when func(pids map[int]int)) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	if when != nil {
		wg.Go(func() {
			select {
			case pids := <-tr.pids:
				when(pids)
			case <-ctx.Done():
			}
		})
	}
	out, err := tr.job.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("the ranks did not end; output:\n%s", strings.Join(tr.lines, "\n"))
	}
	wg.Wait()
	return out
}

func wantOutcome(t *testing.T, out Outcome, code int, message string) {
	t.Helper()
	got := ""
	if out.Err != nil {
		got = out.Err.Error()
	}
	if got != message {
		t.Errorf("error %q\nwant  %q", got, message)
	}
	if out.ExitCode() != code {
		t.Errorf("exit code %d, want %d", out.ExitCode(), code)
	}
}

func TestRunGivesRanksTheirIdentityAndArguments(t *testing.T) {
	tr := newTrial("identity", "identity")
	tr.job.Args = []string{"--config", "a b.yaml"}
	tr.report()
	out := tr.run(t, nil)
	wantOutcome(t, out, ExitOK, "")
	if string(out.Report) != `{"sweeps":10}` {
		t.Errorf("report %q", out.Report)
	}
	slices.Sort(tr.lines)
	for r, line := range tr.lines {
		want := fmt.Sprintf("[%d]<stdout> JACOBI_RUN_ID=0123456789abcdef0123456789abcdef JACOBI_RANK=%d JACOBI_SIZE=2 "+
			"JACOBI_LOCAL_RANK=%d JACOBI_LOCAL_SIZE=2 extra --config a b.yaml", r, r, r)
		if line != want {
			t.Errorf("rank %d says %q\nwant %q", r, line, want)
		}
	}
	if len(tr.lines) != 2 || len(tr.said) != 0 || len(tr.aborts) != 0 {
		t.Errorf("lines %q, announcements %q, aborts %v", tr.lines, tr.said, tr.aborts)
	}
}

func TestRunReportsTheFirstCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks []string
		want  string
	}{
		{"its own words", []string{"follows", "fails:disk full", "follows"},
			"rank 1 on here failed: disk full (last known sweep: none)"},
		{"a panic", []string{"crashes:index 7", "follows"},
			"rank 0 on here failed: panic: index 7 (last known sweep: none)"},
		{"an abort", []string{"aborts:double free or corruption (out)", "follows"},
			"rank 0 on here failed: double free or corruption (out); SIGABRT: abort (last known sweep: none)"},
		{"no words", []string{"follows", "silent"},
			"rank 1 on here failed with exit code 7 without a message (last known sweep: none)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantOutcome(t, newTrial(c.ranks...).run(t, nil), ExitFailed, c.want)
		})
	}
}

// Each failure is reported once: the first cause by the outcome, others by the launcher, consequences not at all.
func TestRunReportsEachFailureOnce(t *testing.T) {
	t.Parallel()
	tr := newTrial("failsWhenTold:rank 0: disk full", "failsWhenTold:no device", "follows")
	out := tr.run(t, func(pids map[int]int) { _ = syscall.Kill(pids[0], syscall.SIGTERM) })
	wantOutcome(t, out, ExitFailed, "rank 0 on here failed: disk full (last known sweep: none)")
	for _, line := range tr.lines {
		if strings.Contains(line, "<stderr>") {
			t.Errorf("shown as well: %s", line)
		}
	}
	if want := []string{"rank 1 on here failed: no device (last known sweep: none)"}; !slices.Equal(tr.said, want) {
		t.Errorf("said %q, want %q", tr.said, want)
	}
}

func TestRunDoesNotWaitForEverForALostReport(t *testing.T) {
	t.Parallel()
	out := newTrial("good", "good").run(t, nil)
	wantOutcome(t, out, ExitOK, "")
	if out.Report != nil {
		t.Errorf("report %q", out.Report)
	}
}

func TestRunPrefersCausesToConsequences(t *testing.T) {
	for _, c := range []struct{ other, want string }{
		{"failsWhenTold:no device", "rank 1 on here failed: no device (last known sweep: none)"},
		{"follows", "rank 0 on here failed: timed out waiting for rank 1 (last known sweep: none)"},
	} {
		t.Run(c.other, func(t *testing.T) {
			t.Parallel()
			out := newTrial("misses", c.other).run(t,
				func(pids map[int]int) { _ = syscall.Kill(pids[0], syscall.SIGTERM) })
			wantOutcome(t, out, ExitFailed, c.want)
		})
	}
}

func TestRunAbortsTheOthersAfterAKilledRank(t *testing.T) {
	t.Parallel()
	tr := newTrial("follows", "follows", "obeys")
	known := make(chan struct{})
	tr.job.OnEvent = func(roster.Event) { close(known) }
	out := tr.run(t, func(pids map[int]int) {
		tr.events <- roster.Event{Kind: roster.Progress, Sweeps: 513, Step: "cycle"}
		<-known
		_ = syscall.Kill(pids[1], syscall.SIGKILL)
	})
	const what = "was killed by SIGKILL (killed); if nobody did that, memory ran out: see dmesg"
	wantOutcome(t, out, ExitFailed, "rank 1 on here "+what+" (last known cycle: 512)")
	for _, line := range tr.lines {
		if strings.Contains(line, "<stderr>") {
			t.Errorf("a consequence is shown: %s", line)
		}
	}
	want := []roster.AbortError{{Rank: 1, Host: "here", Cause: what}}
	if !slices.Equal(tr.aborts, want) {
		t.Errorf("told %v, want %v", tr.aborts, want)
	}
}

func TestRunBelievesARankThatSaysItFailed(t *testing.T) {
	t.Parallel()
	tr := newTrial("follows", "follows")
	out := tr.run(t, func(map[int]int) {
		tr.events <- roster.Event{Kind: roster.Aborted, Rank: 1, Text: "sweep 3: the norm is NaN", Sweeps: 4}
	})
	wantOutcome(t, out, ExitFailed, "rank 1 on here failed: sweep 3: the norm is NaN (last known sweep: 3)")
}

func TestRunKillsRanksThatOutliveAFailure(t *testing.T) {
	t.Parallel()
	tr := newTrial("failsWhenTold:late", "deaf", "deaf")
	tr.job.FailGrace = 2 * time.Second
	out := tr.run(t, func(pids map[int]int) { _ = syscall.Kill(pids[0], syscall.SIGTERM) })
	wantOutcome(t, out, ExitFailed, "rank 0 on here failed: late (last known sweep: none)")
	if want := []string{"ranks 1, 2 did not end in time: killed"}; !slices.Equal(tr.said, want) {
		t.Errorf("said %q, want %q", tr.said, want)
	}
	if !slices.Contains(tr.lines, "[2]<stdout> ignored a signal") {
		t.Errorf("rank 2 was not asked to end first; output %q", tr.lines)
	}
}

func TestRunForwardsTheFirstSignalAndKillsAtTheSecond(t *testing.T) {
	const first = "SIGINT: the ranks stop at a common sweep and write what they have; once more kills them"
	t.Run("first", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("obeys", "obeys")
		tr.report()
		out := tr.run(t, func(map[int]int) { tr.signals <- syscall.SIGINT })
		wantOutcome(t, out, 130, "")
		if !out.Stopped() || out.Killed() || out.Report == nil {
			t.Errorf("stopped %v, killed %v, report %q; want an interrupted run with its report", out.Stopped(),
				out.Killed(), out.Report)
		}
		if !slices.Equal(tr.said, []string{first}) {
			t.Errorf("said %q", tr.said)
		}
	})
	t.Run("second", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("deaf", "deaf")
		out := tr.run(t, func(map[int]int) { tr.signals <- syscall.SIGINT; tr.signals <- syscall.SIGTERM })
		wantOutcome(t, out, 130, "")
		if !out.Stopped() || !out.Killed() {
			t.Errorf("stopped %v, killed %v; want both", out.Stopped(), out.Killed())
		}
		if want := []string{first, "SIGTERM: killing the ranks"}; !slices.Equal(tr.said, want) {
			t.Errorf("said %q", tr.said)
		}
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("obeys")
		tr.report()
		wantOutcome(t, tr.run(t, func(map[int]int) { tr.signals <- syscall.SIGTERM }), 143, "")
	})
	t.Run("a rank that does not listen yet", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("unready", "told")
		var told int
		tr.job.Abort = func(context.Context, roster.AbortError) error { return syscall.Kill(told, syscall.SIGUSR1) }
		out := tr.run(t, func(pids map[int]int) { told = pids[1]; tr.signals <- syscall.SIGINT })
		wantOutcome(t, out, 130, "")
		if !out.Killed() {
			t.Error("want a run that wrote nothing")
		}
	})
	t.Run("a failure meanwhile", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("failsWhenTold:disk full", "follows")
		out := tr.run(t, func(map[int]int) { tr.signals <- syscall.SIGINT })
		wantOutcome(t, out, ExitFailed, "rank 0 on here failed: disk full (last known sweep: none)")
	})
}

func TestRunEndsAtItsTimeLimit(t *testing.T) {
	t.Run("ranks that obey", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("obeys", "obeys")
		tr.job.Timeout, tr.job.Limit = 300*time.Millisecond, "0.3s"
		tr.report()
		out := tr.run(t, nil)
		wantOutcome(t, out, ExitTimeout, "")
		if want := []string{"time limit of 0.3s reached: the ranks stop at a common sweep and write what they " +
			"have"}; !slices.Equal(tr.said, want) {
			t.Errorf("said %q", tr.said)
		}
	})
	t.Run("ranks that do not", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("deaf")
		tr.job.Timeout, tr.job.StopGrace = 5*time.Second, 100*time.Millisecond
		out := tr.run(t, nil)
		wantOutcome(t, out, ExitTimeout, "")
		if len(tr.said) != 2 || tr.said[1] != "rank 0 did not end in time: killed" {
			t.Errorf("said %q", tr.said)
		}
	})
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
		crew: &crew{ended: make([]bool, 3)}, sent: map[syscall.Signal]bool{}}
	for _, e := range []Exit{{Rank: 1, Lost: "silent"}, {Rank: 2, Lost: "silent"}, {Rank: 0, Code: rankConsequence}} {
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

// A rank that has only to end, or has ended, gives no signs of life, and that is no failure.
func TestSilenceAfterTheReportIsNoFailure(t *testing.T) {
	silent, reported := make(chan *roster.SilentError), make(chan struct{})
	once := sync.OnceFunc(func() { close(reported) })
	tr := newTrial("obeys", "obeys")
	tr.job.Silent, tr.job.OnEvent = silent, func(roster.Event) { once() }
	tr.report()
	out := tr.run(t, func(map[int]int) {
		tr.events <- finished("met")
		<-reported
		silent <- silence(0)
		tr.signals <- syscall.SIGTERM // ends the ranks
	})
	if out.Err != nil || out.Report == nil {
		t.Errorf("%v, report %s", out.Err, out.Report)
	}
}
