package awake

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// While a process is held, the time left of its waits does not change.
func TestNoTimePassesWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Bool
		root, stop := context.WithCancel(t.Context())
		defer stop()
		root = Start(root, held.Load)
		clock := Of(root)
		ctx, cancel := WithTimeout(root, 10*time.Second)
		defer cancel()
		timer := clock.NewTimer(12 * time.Second)
		limit := clock.Limit(11 * time.Second)

		time.Sleep(5*time.Second - time.Millisecond)
		held.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if ctx.Err() != nil || len(timer.C) > 0 || limit.Left() != 6*time.Second {
			t.Errorf("held: context %v, timer fired %d times, %v left; want none of it over, and 6s",
				ctx.Err(), len(timer.C), limit.Left())
		}
		held.Store(false)
		begin := time.Now()
		<-ctx.Done()
		if took := time.Since(begin); !about(took, 5*time.Second) {
			t.Errorf("the context ended %v later, want 5s", took)
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("it ended by %v, cause %v", ctx.Err(), context.Cause(ctx))
		}
		if left := limit.Left(); !about(left, time.Second) {
			t.Errorf("%v left, want 1s", left)
		}
		<-timer.C
		if took := time.Since(begin); !about(took, 7*time.Second) {
			t.Errorf("the timer fired %v later, want 7s", took)
		}
	})
}

// What holds up a clock holds up those that were started in its context. What holds up these does not hold it up.
func TestClockInAClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outerHeld, innerHeld atomic.Bool
		root, stop := context.WithCancel(t.Context())
		defer stop()
		outer := Start(root, outerHeld.Load)
		inner := Start(outer, innerHeld.Load)
		passed := func(hold *atomic.Bool) (out, in time.Duration) {
			hold.Store(true)
			time.Sleep(3 * interval) // both have seen it
			out, in = Of(outer).Now(), Of(inner).Now()
			time.Sleep(time.Hour)
			out, in = Of(outer).Now()-out, Of(inner).Now()-in
			hold.Store(false)
			time.Sleep(3 * interval)
			return out, in
		}
		if out, in := passed(&outerHeld); out != 0 || in != 0 {
			t.Errorf("the outer one held: %v and %v pass", out, in)
		}
		if out, in := passed(&innerHeld); out != time.Hour || in != 0 {
			t.Errorf("the inner one held: %v and %v pass", out, in)
		}
	})
}

// about allows a difference of two ticks either way.
func about(got, want time.Duration) bool { return got > want-2*interval && got < want+3*interval }

// A gap in which the process itself did not run counts as one second at most. So a busy machine delays the end of a
// wait, but does not prevent it.
func TestGapsCountALittle(t *testing.T) {
	c := &Clock{tick: time.Now().Add(-time.Hour)}
	if got := c.Now(); got != maxGap {
		t.Errorf("an hour counts as %v, want %v", got, maxGap)
	}
	c.advance(false, false)
	if got := c.Now(); got < maxGap || got > maxGap+time.Second/2 {
		t.Errorf("%v are counted, want %v", got, maxGap)
	}
	c.advance(false, true)
	c.tick = c.tick.Add(-time.Hour)
	if got := c.Now(); got < time.Hour {
		t.Errorf("%v are counted without ticks, want all time", got)
	}
}

// Without a clock all time counts.
func TestWithoutAClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock *Clock
		timer, limit := clock.NewTimer(time.Hour), clock.Limit(time.Hour)
		timer.Reset(2 * time.Second)
		begin := time.Now()
		<-timer.C
		if took := time.Since(begin); took != 2*time.Second || limit.Left() != time.Hour-took {
			t.Errorf("the timer fired after %v, and %v are left", took, limit.Left())
		}
		timer.Reset(time.Second)
		time.Sleep(2 * time.Second)
		timer.Reset(time.Second) // discards what it sent
		timer.Stop()
		time.Sleep(2 * time.Second)
		if len(timer.C) > 0 {
			t.Error("a stopped timer fires")
		}
		ctx, cancel := WithTimeoutCause(t.Context(), time.Second, errors.New("late"))
		defer cancel()
		<-ctx.Done()
		if cause := context.Cause(ctx); cause.Error() != "late" {
			t.Errorf("cause %v", cause)
		}
	})
}

// The state of a process is found whatever its name.
func TestWatch(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "(\n) T )\n\n\n\n\n\n\n")
	if err := os.Symlink(sleep, named); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sleep, "600")
	cmd.Path = named
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails if it has ended
	stopped := Watch(cmd.Process.Pid)
	if stopped() {
		t.Error("it runs")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	if !stopped() {
		t.Error("it is stopped")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed, so this is an error
	if stopped() || Watch(1<<30)() {
		t.Error("there is no such process")
	}
}
