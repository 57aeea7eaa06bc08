package launch

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/net/roster"
)

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
