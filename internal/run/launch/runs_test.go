package launch

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/net/roster"
)

// Words of the launcher and of a failed rank.
const (
	stopping = ": the ranks stop at a common sweep and write what they have"
	first    = "SIGINT" + stopping + "; once more kills them"
	noSweep  = " (last known sweep: none)"
	byKill   = "was killed by SIGKILL (killed); if nobody did that, memory ran out: see dmesg"
	complete = ": killed; the run was complete"
	soon     = 100 * time.Millisecond
)

func signalRank(rank int, sig syscall.Signal) func(*trial, map[int]int) {
	return func(_ *trial, pids map[int]int) { _ = syscall.Kill(pids[rank], sig) }
}

func signalled(sigs ...syscall.Signal) func(*trial, map[int]int) {
	return func(tr *trial, _ map[int]int) {
		for _, s := range sigs {
			tr.signals <- s
		}
	}
}

func publish(events ...roster.Event) func(*trial, map[int]int) {
	return func(tr *trial, _ map[int]int) {
		for _, e := range events {
			tr.events <- e
		}
	}
}

// A run ends with the exit code, the first cause and the words that belong to how its ranks end. Each failure is told
// once: the first cause by the outcome, others by the launcher, consequences not at all.
func TestRuns(t *testing.T) {
	for name, c := range map[string]struct {
		ranks   []string
		prepare func(*trial)
		when    func(tr *trial, pids map[int]int) // all ranks are ready
		code    int
		err     string
		said    []string
		stopped bool   // early
		killed  bool   // before it could write its results
		report  bool   // it has one
		line    string // of a rank, that is shown; "" for any
	}{
		"a failure in its own words": {ranks: []string{"follows", "failsWhenTold:disk full", "follows"},
			when: signalRank(1, syscall.SIGTERM), code: ExitFailed, err: "rank 1 on here failed: disk full" + noSweep},
		"a panic": {ranks: []string{"crashes:index 7", "follows"}, when: signalRank(0, syscall.SIGTERM),
			code: ExitFailed, err: "rank 0 on here failed: panic: index 7" + noSweep},
		"an abort": {ranks: []string{"aborts:double free or corruption (out)", "follows"},
			when: signalRank(0, syscall.SIGTERM), code: ExitFailed,
			err: "rank 0 on here failed: double free or corruption (out); SIGABRT: abort" + noSweep},
		"no words": {ranks: []string{"follows", "silent"}, when: signalRank(1, syscall.SIGTERM), code: ExitFailed,
			err: "rank 1 on here failed with exit code 7 without a message" + noSweep},
		"several failures": {ranks: []string{"failsWhenTold:rank 0: disk full", "failsWhenTold:no device", "follows"},
			when: signalRank(0, syscall.SIGTERM), code: ExitFailed,
			err:  "rank 0 on here failed: disk full" + noSweep,
			said: []string{"rank 1 on here failed: no device" + noSweep}},
		"a consequence first": {ranks: []string{"misses", "failsWhenTold:no device"},
			when: signalRank(0, syscall.SIGTERM), code: ExitFailed, err: "rank 1 on here failed: no device" + noSweep},
		"consequences only": {ranks: []string{"misses", "follows"}, when: signalRank(0, syscall.SIGTERM),
			code: ExitFailed, err: "rank 0 on here failed: timed out waiting for rank 1" + noSweep},
		"a failure that a rank publishes": {ranks: []string{"follows", "follows"}, code: ExitFailed,
			when: publish(roster.Event{Kind: roster.Aborted, Rank: 1, Text: "sweep 3: the norm is NaN", Sweeps: 4}),
			err:  "rank 1 on here failed: sweep 3: the norm is NaN (last known sweep: 3)"},
		"ranks that outlive a failure": {ranks: []string{"failsWhenTold:late", "deaf", "deaf"},
			prepare: func(tr *trial) { tr.job.FailGrace = 2 * time.Second }, when: signalRank(0, syscall.SIGTERM),
			code: ExitFailed, err: "rank 0 on here failed: late" + noSweep,
			said: []string{"ranks 1, 2 did not end in time: killed"}, line: "[2]<stdout> ignored a signal",
			killed: true},
		"a lost report": {ranks: []string{"good", "good"}, prepare: func(tr *trial) { tr.reports = false }},

		"the first signal": {ranks: []string{"obeys", "obeys"}, when: signalled(syscall.SIGINT), code: 130,
			said: []string{first}, stopped: true, report: true},
		"the second signal": {ranks: []string{"deaf", "deaf"}, when: signalled(syscall.SIGINT, syscall.SIGTERM),
			code: 130, said: []string{first, "SIGTERM: killing the ranks"}, stopped: true, killed: true},
		"SIGTERM": {ranks: []string{"obeys"}, when: signalled(syscall.SIGTERM), code: 143,
			said: []string{strings.Replace(first, "SIGINT", "SIGTERM", 1)}, stopped: true, report: true},
		"a failure after a signal": {ranks: []string{"failsWhenTold:disk full", "follows"},
			when: signalled(syscall.SIGINT), code: ExitFailed, err: "rank 0 on here failed: disk full" + noSweep,
			said: []string{first}},
		"a signal to a rank that does not listen yet": {ranks: []string{"unready", "told"},
			when: func(tr *trial, pids map[int]int) {
				tr.job.Abort = func(context.Context, roster.AbortError) error {
					return syscall.Kill(pids[1], syscall.SIGUSR1)
				}
				tr.signals <- syscall.SIGINT
			}, code: 130, said: []string{first}, stopped: true, killed: true},
		"the time limit": {ranks: []string{"obeys", "obeys"}, // which listen by then
			prepare: func(tr *trial) { tr.job.Timeout, tr.job.Limit = 5*time.Second, "5s" }, code: ExitTimeout,
			said: []string{"time limit of 5s reached" + stopping}, stopped: true, report: true},
		"ranks that outlive the time limit": {ranks: []string{"deaf"},
			prepare: func(tr *trial) { tr.job.Timeout, tr.job.Limit, tr.job.StopGrace = 5*time.Second, "5s", soon },
			code:    ExitTimeout, stopped: true, killed: true,
			said: []string{"time limit of 5s reached" + stopping, "rank 0 did not end in time: killed"}},

		"a rank that outlives a good end": {ranks: []string{"good", "deaf"},
			prepare: func(tr *trial) { tr.job.EndGrace = soon }, report: true,
			said: []string{"rank 1 did not end within 100ms of the other ranks" + complete}},
		"a rank that outlives the report": {ranks: []string{"deaf"},
			prepare: func(tr *trial) { tr.job.StopGrace = soon }, when: publish(finished(configs.Met)), report: true,
			said: []string{"rank 0 did not end within 100ms of the report" + complete}},
		"ranks that outlive the report": {ranks: []string{"deaf", "deaf"},
			prepare: func(tr *trial) { tr.job.StopGrace = soon }, when: publish(finished(configs.Missed)),
			code: ExitMissed, report: true,
			said: []string{"ranks 0, 1 did not end within 100ms of the report" + complete}},
		"a rank that outlives the report of a stopped run": {ranks: []string{"deaf"},
			prepare: func(tr *trial) { tr.job.StopGrace = soon }, when: publish(finished(configs.Interrupted)),
			code: RankInterrupted, stopped: true, report: true,
			said: []string{"rank 0 did not end within 100ms of the report" + complete}},
		"a signal after the report": {ranks: []string{"deaf"}, when: func(tr *trial, _ map[int]int) {
			tr.events <- finished(configs.Met)
			<-tr.known
			tr.signals <- syscall.SIGTERM
		}, report: true, said: []string{"SIGTERM: killing the ranks"}},
		"a rank that misses the last barrier": {ranks: []string{"misses", "deaf"},
			prepare: func(tr *trial) { tr.job.FailGrace = soon }, report: true,
			when: publish(finished(configs.Met), roster.Event{Kind: roster.Aborted, Text: "rank 1 was not heard of"}),
			said: []string{"rank 1 did not end in time" + complete,
				"rank 0 on here failed: rank 1 was not heard of; the run was complete"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(c.ranks...)
			tr.reports = true
			if c.prepare != nil {
				c.prepare(tr)
			}
			var when func(map[int]int)
			if c.when != nil {
				when = func(pids map[int]int) { c.when(tr, pids) }
			}
			out := tr.run(t, when)
			wantOutcome(t, out, c.code, c.err)
			if out.Stopped() != c.stopped || out.Killed() != c.killed || (out.Report != nil) != c.report {
				t.Errorf("stopped %v, killed %v, report %q; want %v, %v and %v", out.Stopped(), out.Killed(),
					out.Report, c.stopped, c.killed, c.report)
			}
			if !slices.Equal(tr.said, c.said) {
				t.Errorf("said %q, want %q", tr.said, c.said)
			}
			if c.line != "" && !slices.Contains(tr.lines, c.line) {
				t.Errorf("no %q in %q", c.line, tr.lines)
			}
			for _, line := range tr.lines { // what the outcome or the launcher tells, or what follows from it
				if strings.Contains(line, "<stderr> "+RankBinary) {
					t.Errorf("shown as well: %s", line)
				}
			}
		})
	}
}
