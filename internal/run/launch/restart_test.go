package launch

import (
	"errors"
	"syscall"
	"testing"

	"jacobi/internal/net/roster"
)

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
