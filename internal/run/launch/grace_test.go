package launch

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/net/roster"
)

// A rank that does not end after another one has ended as it should is named and killed. The run counts as it is.
func TestRunEndsARankThatOutlivesAGoodEnd(t *testing.T) {
	t.Parallel()
	tr := newTrial("good", "deaf")
	tr.job.EndGrace = 100 * time.Millisecond
	tr.report()
	out := tr.run(t, nil)
	wantOutcome(t, out, ExitOK, "")
	if out.Stopped() || out.Killed() || out.Report == nil {
		t.Errorf("stopped %v, killed %v, report %q; want a whole run", out.Stopped(), out.Killed(), out.Report)
	}
	want := []string{"rank 1 did not end within 100ms of the other ranks: killed; the run was complete"}
	if !slices.Equal(tr.said, want) {
		t.Errorf("said %q, want %q", tr.said, want)
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
	c, err := startCrew(t.Context(), &tr.job)
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{Job: &tr.job, crew: c, sent: map[syscall.Signal]bool{}}
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

// Ranks that do not end after the report is written are named and killed. The run counts as the report says.
func TestRunEndsRanksThatOutliveTheReport(t *testing.T) {
	for _, c := range []struct {
		ranks   []string
		verdict configs.Verdict
		code    int
		names   string
	}{
		{[]string{"deaf"}, configs.Met, ExitOK, "rank 0"},
		{[]string{"deaf", "deaf"}, configs.Done, ExitOK, "ranks 0, 1"},
		{[]string{"deaf", "deaf"}, configs.Missed, ExitMissed, "ranks 0, 1"},
		{[]string{"deaf"}, configs.Interrupted, rankInterrupted, "rank 0"},
	} {
		t.Run(c.names+" "+string(c.verdict), func(t *testing.T) {
			t.Parallel()
			tr := newTrial(c.ranks...)
			tr.job.StopGrace = 100 * time.Millisecond
			out := tr.run(t, func(map[int]int) { tr.events <- finished(c.verdict) })
			wantOutcome(t, out, c.code, "")
			if out.Killed() || out.Report == nil || out.Stopped() != (c.verdict == configs.Interrupted) {
				t.Errorf("stopped %v, killed %v, report %q; want a whole run", out.Stopped(), out.Killed(), out.Report)
			}
			want := []string{c.names + " did not end within 100ms of the report: killed; the run was complete"}
			if !slices.Equal(tr.said, want) {
				t.Errorf("said %q, want %q", tr.said, want)
			}
		})
	}
}

// The first signal after the report ends the wait for ranks that have only to end.
func TestSignalAfterTheReportKills(t *testing.T) {
	t.Parallel()
	tr := newTrial("deaf")
	known := make(chan struct{})
	tr.job.OnEvent = func(roster.Event) { close(known) }
	out := tr.run(t, func(map[int]int) {
		tr.events <- finished(configs.Met)
		<-known
		tr.signals <- syscall.SIGTERM
	})
	wantOutcome(t, out, ExitOK, "")
	if want := []string{"SIGTERM: killing the ranks"}; !slices.Equal(tr.said, want) || out.Killed() {
		t.Errorf("said %q, want %q; killed %v", tr.said, want, out.Killed())
	}
}

// A rank that dies once all outputs are in place is named. The run counts as the report says, whichever becomes known
// first.
func TestRunIsCompleteAlthoughARankDiesAtItsEnd(t *testing.T) {
	died := Exit{Rank: 1, Signal: syscall.SIGKILL}
	report := finished(configs.Missed)
	for _, reportFirst := range []bool{true, false} {
		tr := newTrial("", "", "")
		s := &supervisor{Job: &tr.job, crew: &crew{ended: make([]bool, 3)}, sent: map[syscall.Signal]bool{}}
		if reportFirst {
			s.event(t.Context(), report)
			s.ended(t.Context(), died)
		} else {
			s.ended(t.Context(), died)
			s.event(t.Context(), report)
		}
		s.event(t.Context(), roster.Event{Kind: roster.Aborted, Rank: 0, Consequence: true})
		s.ended(t.Context(), Exit{Rank: 0, Code: rankConsequence})
		s.ended(t.Context(), Exit{Rank: 2, Code: rankMissed})
		s.conclude()
		wantOutcome(t, s.out, ExitMissed, "")
		want := []string{"rank 1 on here was killed by SIGKILL (killed); if nobody did that, memory ran out: see " +
			"dmesg; the run was complete"}
		if !slices.Equal(tr.said, want) {
			t.Errorf("report first %v: said %q, want %q", reportFirst, tr.said, want)
		}
	}
}

// A rank that is stopped at the last barrier is killed soon after the others have missed it. The run is complete.
func TestRunEndsARankThatMissesTheLastBarrier(t *testing.T) {
	t.Parallel()
	tr := newTrial("misses", "deaf")
	tr.job.FailGrace = 100 * time.Millisecond
	out := tr.run(t, func(map[int]int) {
		tr.events <- finished(configs.Met)
		tr.events <- roster.Event{Kind: roster.Aborted, Rank: 0, Text: "rank 1 was not heard of"}
	})
	wantOutcome(t, out, ExitOK, "")
	want := []string{"rank 1 did not end in time: killed; the run was complete",
		"rank 0 on here failed: rank 1 was not heard of; the run was complete"}
	if !slices.Equal(tr.said, want) {
		t.Errorf("said %q, want %q", tr.said, want)
	}
}

// A rank that fails after another one has ended well does no harm either, if the report was lost.
func TestRunIsCompleteOnceARankHasEndedWell(t *testing.T) {
	tr := newTrial("", "")
	s := &supervisor{Job: &tr.job, crew: &crew{ended: make([]bool, 2)}, sent: map[syscall.Signal]bool{}}
	s.ended(t.Context(), Exit{Rank: 0, Code: rankMissed})
	s.ended(t.Context(), Exit{Rank: 1, Code: 1, Said: "disk on fire"})
	s.conclude()
	wantOutcome(t, s.out, ExitMissed, "")
	want := []string{"rank 1 on here failed: disk on fire; the run was complete"}
	if !slices.Equal(tr.said, want) {
		t.Errorf("said %q, want %q", tr.said, want)
	}
}
