package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
)

// processes holds all ranks of a run, on all hosts. One goroutine owns it.
type processes struct {
	hosts map[string]Host
	ended []bool    // by rank; set by note
	exits chan Exit // receives one Exit for each rank
}

// startRanks starts the ranks on their hosts. If one does not start, the others are killed.
func startRanks(ctx context.Context, j *Job) (*processes, error) {
	c := &processes{hosts: j.Hosts, ended: make([]bool, len(j.Ranks)), exits: make(chan Exit, len(j.Ranks))}
	specs := map[string]Spec{}
	for _, p := range j.Ranks {
		if c.hosts[p.Host] == nil {
			return nil, errors.Join(fmt.Errorf("start rank %d: host %s was not reached", p.Rank, p.Host), c.close())
		}
		s, ok := specs[p.Host]
		if !ok {
			s = Spec{Path: j.Path, Dir: j.Dir, Env: j.HostEnv[p.Host]}
		}
		s.Ranks = append(s.Ranks, roster.Identity{
			RunID: j.RunID, Rank: p.Rank, Size: len(j.Ranks), LocalRank: p.LocalRank, LocalSize: p.LocalSize,
		})
		specs[p.Host] = s
	}
	sink := Sink{Line: j.Output, Exit: func(e Exit) { c.exits <- e }}
	err := each(c.hosts, func(name string, h Host) error {
		if spec, ok := specs[name]; ok {
			return h.Start(ctx, spec, sink)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// signal sends sig to all ranks that have not ended.
func (c *processes) signal(sig syscall.Signal) {
	for _, h := range c.hosts {
		h.Signal(sig)
	}
}

// note records an Exit that was received from exits.
func (c *processes) note(e Exit) { c.ended[e.Rank] = true }

// running returns the ranks that note has not recorded.
func (c *processes) running() []int {
	var ranks []int
	for r, ended := range c.ended {
		if !ended {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (c *processes) close() error { return CloseAll(c.hosts) }

// CloseAll closes all hosts at the same time.
func CloseAll(hosts map[string]Host) error {
	return each(hosts, func(_ string, h Host) error { return h.Close() })
}

// each does something with all hosts at the same time.
func each(hosts map[string]Host, do func(name string, h Host) error) (all error) {
	errs := make(chan error, len(hosts))
	for name, h := range hosts {
		go func() { errs <- do(name, h) }()
	}
	for range hosts {
		all = errors.Join(all, <-errs)
	}
	return all
}

// NotifySignals returns a channel of the signals that end or suspend a run, until stop is called.
//
// SIGPIPE ends a run if stdout or stderr has no reader. A write to a closed connection raises it as well, for example
// to the server of a run that has ended; such a SIGPIPE is ignored.
func NotifySignals() (signals <-chan os.Signal, stop func()) {
	all, ending, done := make(chan os.Signal, 16), make(chan os.Signal, 16), make(chan struct{})
	signal.Notify(all, os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(all, syscall.SIGHUP)
	}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(all, syscall.SIGTSTP)
	}
	go func() {
		for {
			select {
			case s := <-all:
				if s == syscall.SIGPIPE && !lost(0, unix.Stdout, unix.Stderr) {
					continue
				}
				select {
				case ending <- s:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return ending, func() { signal.Stop(all); close(done) }
}

// StopSelf stops this process, as Ctrl-Z stops one that does not catch SIGTSTP, and returns after SIGCONT.
func StopSelf() {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	// SIGTSTP would not do: the kernel ignores it for a process group that no shell can continue.
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err == nil {
		<-goesOn
	}
}

// AwaitUnread returns when a file that is a pipe or terminal has no reader any more, and else never.
func AwaitUnread(fd int) { lost(-1, fd) }

// lost reports whether one of the files loses its reader within the time, in ms; -1 waits for that.
func lost(within int, fds ...int) bool {
	var polls []unix.PollFd
	for _, fd := range fds {
		polls = append(polls, unix.PollFd{Fd: int32(fd)})
	}
	for {
		_, err := unix.Poll(polls, within)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		for _, p := range polls {
			if p.Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				return true
			}
		}
		return false
	}
}

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
		s.killAfter(ctx, grace)
	}
}

// killAfter sets the time after which ranks that have not ended are killed, or left behind.
func (s *supervisor) killAfter(ctx context.Context, grace time.Duration) {
	s.kill = awake.Of(ctx).NewTimer(grace).C
}

// late kills the ranks that have not ended within their grace period. Ranks that were killed before are left behind.
func (s *supervisor) late(ctx context.Context) {
	late := s.ranks.running()
	names := roster.FormatRanks(late)
	switch {
	case s.killed:
		s.Say(fmt.Sprintf("%s did not end within %v of SIGKILL: left behind; the kernel holds a process that waits "+
			"for a broken disk or device", names, s.KillGrace))
		s.cutOff()
		for _, rank := range late {
			s.ranks.note(Exit{Rank: rank})
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
		s.killAfter(ctx, s.KillGrace)
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
