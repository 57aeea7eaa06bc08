package launch

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/awake"
)

// SIGTSTP stops the ranks on all hosts before the launcher stops itself. They continue when the launcher does.
func TestSuspendedRanksGoOn(t *testing.T) {
	for _, far := range []bool{false, true} {
		tr := newTrial("obeys", "obeys", "obeys")
		tr.report()
		if far {
			tr.overPipes(t.Context())
		}
		stopped := make(chan []bool, 1)
		ready := make(chan map[int]int, 1)
		tr.job.StopSelf = func() {
			var all []bool
			for _, pid := range <-ready {
				all = append(all, becomes(pid, true))
			}
			stopped <- all
		}
		out := tr.run(t, func(pids map[int]int) {
			ready <- pids
			tr.signals <- syscall.SIGTSTP
			for rank, is := range <-stopped {
				if !is {
					t.Errorf("far %v: one of three ranks (%d) is not stopped", far, rank)
				}
			}
			for rank, pid := range pids {
				if !becomes(pid, false) {
					t.Errorf("far %v: rank %d does not go on", far, rank)
				}
			}
			tr.signals <- syscall.SIGINT
		})
		wantOutcome(t, out, 130, "")
	}
}

// becomes waits until a process is stopped, or is not. It polls: the kernel notifies the parent alone.
func becomes(pid int, stopped bool) bool {
	state := awake.Watch(pid)
	for range 1000 {
		if state() == stopped {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// The far end tolerates an hour of silence from a launcher that has suspended its ranks, otherwise 12 s.
func TestFarEndOfASuspendedLauncher(t *testing.T) {
	const (
		silent  = "the launcher: nothing was heard of it for 12s"
		stopped = "the launcher: it was stopped for more than 1h0m0s"
	)
	for _, c := range []struct {
		orders []syscall.Signal
		after  time.Duration
		want   string
	}{
		{nil, silenceLimit, silent},
		{[]syscall.Signal{syscall.SIGSTOP}, suspendLimit, stopped},
		{[]syscall.Signal{syscall.SIGSTOP, 0, 0}, suspendLimit, stopped}, // the zero Orders were under way
		{[]syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT}, silenceLimit, silent},
	} {
		synctest.Test(t, func(t *testing.T) {
			orders, ended := make(chan Order), make(chan error, 1)
			stopped := 0
			go func() {
				ended <- Serve(t.Context(), orders, func(n News) error {
					if n.Stopped {
						stopped++
					}
					return nil
				}, nil)
			}()
			for _, sig := range c.orders {
				orders <- Order{Signal: sig}
			}
			begin := time.Now()
			err := <-ended
			if took := time.Since(begin); took != c.after || err == nil || err.Error() != c.want {
				t.Errorf("after %v: %v after %v, want %s after %v", c.orders, err, took, c.want, c.after)
			}
			if want := min(1, len(c.orders)); stopped != want {
				t.Errorf("after %v: told %d times that the ranks are stopped, want %d", c.orders, stopped, want)
			}
		})
	}
}
