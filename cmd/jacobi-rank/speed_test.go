package main

import (
	"testing"
	"time"
)

// The time is estimated from the last seconds alone. The run goes on from 40,000 sweeps, and then slows down.
func TestTimeForUsesRecentSweeps(t *testing.T) {
	var s speed
	at := time.Unix(0, 0)
	s.add(at, 40000)
	if got := s.timeFor(1000); got != 0 {
		t.Errorf("%v before a speed is known", got)
	}
	for range 100 {
		at = at.Add(time.Second / 5)
		s.add(at, s.marks[len(s.marks)-1].sweeps+1000)
	}
	if got := s.timeFor(100000); got != 20*time.Second {
		t.Errorf("%v for 100,000 sweeps at 5,000 a second", got)
	}
	for range 26 {
		at = at.Add(time.Second / 5)
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
