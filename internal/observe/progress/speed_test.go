package progress

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/awake"
)

// The time is estimated from the last seconds alone. The run goes on from 40,000 sweeps, and then slows down.
func TestTimeForUsesRecentSweeps(t *testing.T) {
	var s speed
	var at time.Duration
	s.add(at, 40000)
	if got := s.timeFor(1000); got != 0 {
		t.Errorf("%v before a speed is known", got)
	}
	for range 100 {
		at += time.Second / 5
		s.add(at, s.marks[len(s.marks)-1].sweeps+1000)
	}
	if got := s.timeFor(100000); got != 20*time.Second {
		t.Errorf("%v for 100,000 sweeps at 5,000 a second", got)
	}
	for range 26 {
		at += time.Second / 5
		s.add(at, s.marks[len(s.marks)-1].sweeps+100)
	}
	if got := s.timeFor(1000); got != 2*time.Second {
		t.Errorf("%v for 1,000 sweeps at 500 a second", got)
	}
	if n := len(s.marks); n > 30 {
		t.Errorf("%d marks are kept", n)
	}
	if got := s.timeFor(0); got != 0 {
		t.Errorf("%v for no sweeps", got)
	}
}

// Time in which the run is stopped does not count: a minute of Ctrl-Z does not make 13 minutes 44 hours.
func TestTimeForLeavesOutStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stopped atomic.Bool
		clock := awake.Of(awake.Start(ctx, stopped.Load))
		var s speed
		s.add(clock.Now(), 0)
		time.Sleep(time.Second)
		s.add(clock.Now(), 1000)
		stopped.Store(true)
		time.Sleep(time.Minute)
		stopped.Store(false)
		time.Sleep(time.Second)
		s.add(clock.Now(), 2000)
		if got := s.timeFor(1000); got < 900*time.Millisecond || got > 1100*time.Millisecond {
			t.Errorf("%v for 1,000 sweeps at 1,000 a second", got)
		}
	})
}
