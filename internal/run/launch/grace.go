package launch

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
)

// The events after which ranks must end.
const (
	theReport = "the report" // all outputs are in place
	theOthers = "the other ranks"
)

// finished takes the report of the run. The ranks only have to end now, even if something has failed.
func (s *supervisor) finished(ctx context.Context, e roster.Event) {
	s.verdict = configs.Verdict(e.Verdict)
	if e.Report != nil {
		s.out.Report = e.Report
	}
	if s.done == "" {
		s.endWithin(ctx, s.StopGrace, theReport)
	}
}

// endedWell starts the time in which the other ranks have to end after one that ended as it should: all have passed the
// last barrier.
func (s *supervisor) endedWell(ctx context.Context) {
	if s.done != theOthers && !s.failing && !s.killed {
		s.endWithin(ctx, s.EndGrace, theOthers)
	}
}

func (s *supervisor) endWithin(ctx context.Context, grace time.Duration, of string) {
	s.done, s.grace = of, grace
	if !s.failing && !s.killed {
		s.kill = awake.Of(ctx).NewTimer(grace).C
	}
}

// late kills the ranks that have not ended within their grace period. Ranks that were killed before are left behind.
func (s *supervisor) late(ctx context.Context) {
	late := s.crew.running()
	names := roster.FormatRanks(late)
	switch {
	case s.killed:
		s.Say(fmt.Sprintf("%s did not end within %v of SIGKILL: left behind; the kernel holds a process that waits "+
			"for a broken disk or device", names, s.KillGrace))
		s.cutOff()
		for _, rank := range late {
			s.crew.note(Exit{Rank: rank})
		}
		return
	case s.done != "" && !s.failing:
		s.Say(fmt.Sprintf("%s did not end within %v of %s: killed; the run was complete", names, s.grace, s.done))
	case s.done != "":
		s.Say(names + " did not end in time: killed; the run was complete")
	default:
		s.Say(names + " did not end in time: killed")
	}
	s.killAll(ctx)
}

// killAll kills the ranks that have not ended.
func (s *supervisor) killAll(ctx context.Context) {
	s.send(syscall.SIGKILL)
	if !s.killed {
		s.killed = true
		s.kill = awake.Of(ctx).NewTimer(s.KillGrace).C
	}
}

// cutOff records that a signal of the launcher ended a rank before it could write its results. A rank that had only to
// end loses nothing.
func (s *supervisor) cutOff() {
	if s.done != "" {
		return
	}
	s.out.killed = true
	if !s.failing {
		s.lost, s.out.stopped = true, true
	}
}
