package launch

import (
	"slices"
	"syscall"
	"testing"
)

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
