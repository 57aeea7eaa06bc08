package launch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/net/roster"
)

// Job describes the ranks to start and how to watch them.
type Job struct {
	Path  string // program of a rank; empty: each host looks for RankBinary
	Dir   string // working directory of each rank; empty: that of the process that starts it
	RunID string
	Ranks []Placement     // by rank
	Hosts map[string]Host // the hosts in Ranks, by name; Run closes them
	// HostEnv holds the variables of the ranks of a host. They override the environment of the process that starts
	// them, and the identity overrides them.
	HostEnv map[string][]string

	// Output receives whole lines of a rank's output. Several goroutines call it.
	Output func(rank int, s Stream, line []byte)
	// Say receives the launcher's own announcements.
	Say func(text string)
	// Events delivers the events that ranks publish. Each one is passed on to OnEvent if that is not nil.
	Events  <-chan roster.Event
	OnEvent func(roster.Event)
	// Silent delivers ranks whose heartbeats have stopped; nil if nobody listens to heartbeats.
	Silent <-chan *roster.SilentError
	// Abort tells all ranks that the run has failed.
	Abort func(context.Context, roster.AbortError) error
	// Signals delivers the signals sent to the launcher. The first one stops the run, the second one kills it. SIGTSTP
	// suspends the run: the ranks are stopped, StopSelf is called, and the ranks continue when StopSelf returns.
	Signals  <-chan os.Signal
	StopSelf func() // stops this process and returns after SIGCONT

	Timeout   time.Duration // the run is stopped after so long; 0 for no limit
	Limit     string        // the whole time limit as the user wrote it; Timeout is the rest of it
	StopGrace time.Duration // how long ranks may take to stop at the timeout, or to end after the report
	FailGrace time.Duration // how long ranks may take to end after the failure of another one
	EndGrace  time.Duration // how long ranks may take to end after another one that ended as it should
	KillGrace time.Duration // how long killed ranks may take to end: the kernel holds those that wait for a broken disk
}

const (
	abortTimeout = time.Second
	// eventDelay bounds the wait for the last event of a rank that has ended.
	eventDelay = time.Second
	// suspendTimeout bounds the wait for other machines to stop their ranks.
	suspendTimeout = 2 * time.Second
)

// supervisor is a run in progress. One goroutine owns it.
type supervisor struct {
	*Job
	ranks    *processes
	verdict  configs.Verdict // of the report; "" until it has arrived
	failures []RankError     // in the order in which they became known
	sweeps   int             // that the run has done, as far as known
	step     string          // what sweeps counts: "cycle", or "" for sweeps
	failing  bool
	done     string        // what the ranks have to end after: outputs are in place, no work is open; "" until then
	grace    time.Duration // within which they have to
	lost     bool          // a signal of the launcher ended a rank, so the others cannot finish
	sent     map[syscall.Signal]bool
	kill     <-chan time.Time // fires when the grace period is over
	killed   bool             // the ranks were killed: kill fires once more for those that the kernel does not end
	out      Outcome
}

// Run starts the ranks and returns when all of them have ended. An error means that they could not be started. When ctx
// ends, the ranks are killed.
func (j *Job) Run(ctx context.Context) (Outcome, error) {
	c, err := startRanks(ctx, j)
	if err != nil {
		return Outcome{}, err
	}
	s := &supervisor{Job: j, ranks: c, sent: map[syscall.Signal]bool{}}
	s.watch(ctx)
	s.awaitReport()
	s.conclude()
	if err := c.close(); err != nil {
		s.Say(err.Error())
	}
	return s.out, nil
}

// watch returns when all ranks have ended.
func (s *supervisor) watch(ctx context.Context) {
	var timeout <-chan time.Time
	if s.Timeout > 0 {
		timeout = time.After(s.Timeout)
	}
	done := ctx.Done()
	for len(s.ranks.running()) > 0 {
		select {
		case e := <-s.ranks.exits:
			s.ended(ctx, e)
		case e := <-s.Events:
			s.event(ctx, e)
		case e := <-s.Silent:
			s.fellSilent(ctx, e)
		case sig := <-s.Signals:
			s.signalled(ctx, sig)
		case <-timeout:
			s.timedOut(ctx)
		case <-s.kill:
			s.late(ctx)
		case <-done:
			s.killAll(ctx)
			done = nil
		}
	}
}

// awaitReport waits up to eventDelay for the report, which may arrive after the last rank has ended.
func (s *supervisor) awaitReport() {
	late := time.After(eventDelay)
	for s.out.Report == nil && len(s.failures) == 0 && !s.lost {
		select {
		case e := <-s.Events:
			s.event(context.Background(), e)
		case <-late:
			return
		}
	}
}

// ended handles the end of a rank.
func (s *supervisor) ended(ctx context.Context, e Exit) {
	s.ranks.note(e)
	switch {
	case e.Lost != "":
		if host := s.Ranks[e.Rank].Host; !slices.Contains(s.out.LostHosts, host) {
			s.out.LostHosts = append(s.out.LostHosts, host)
		}
	case e.Signal == 0 && slices.Contains([]int{0, RankInterrupted, ExitMissed}, e.Code):
		s.out.stopped = s.out.stopped || e.Code == RankInterrupted
		s.out.missed = s.out.missed || e.Code == ExitMissed
		s.endedWell(ctx)
		return
	case e.Signal != 0 && s.sent[e.Signal]:
		if s.cutOff(); s.failing {
			return
		}
		if e.Signal == syscall.SIGTERM { // the rank did not handle signals yet, so the others wait for it in vain
			s.fail(ctx, roster.AbortError{Rank: -1, Cause: "the run was stopped before all ranks had begun"})
		}
		return
	}
	died := e.Lost != "" || e.Signal != 0
	s.failed(ctx, RankError{Rank: e.Rank, Text: e.String(), Died: died,
		Consequence: !died && e.Code == RankConsequence})
}

// failed records the failure of a rank. An Exit and an event may both report it: the first one counts.
func (s *supervisor) failed(ctx context.Context, f RankError) {
	if slices.ContainsFunc(s.failures, func(known RankError) bool { return known.Rank == f.Rank }) {
		return
	}
	f.Host, f.Sweeps, f.Step = cmp.Or(f.Host, s.Ranks[f.Rank].Host), s.sweeps, s.step
	s.failures = append(s.failures, f)
	s.fail(ctx, roster.AbortError{Rank: f.Rank, Host: f.Host, Cause: f.Text, Consequence: f.Consequence})
}

// fellSilent handles a rank whose heartbeats have stopped. One that has only to end sends none.
func (s *supervisor) fellSilent(ctx context.Context, e *roster.SilentError) {
	if s.done == "" && !s.failing && !s.killed && !s.ranks.ended[e.Rank] {
		s.failed(ctx, RankError{Rank: e.Rank, Host: e.Host, Text: e.Words(), Died: true})
	}
}

// fail tells the other ranks to end.
func (s *supervisor) fail(ctx context.Context, why roster.AbortError) {
	if s.failing {
		return
	}
	s.failing = true
	if !s.killed {
		s.killAfter(ctx, s.FailGrace)
	}
	if s.Abort != nil && len(s.ranks.running()) > 0 {
		ctx, cancel := context.WithTimeout(ctx, abortTimeout)
		defer cancel()
		_ = s.Abort(ctx, why) // a rank that the message does not reach gets the signal below
	}
	s.send(syscall.SIGTERM)
}

// event handles an event that a rank published.
func (s *supervisor) event(ctx context.Context, e roster.Event) {
	s.sweeps, s.step = max(s.sweeps, e.Sweeps), cmp.Or(e.Step, s.step)
	switch e.Kind {
	case roster.Finished:
		s.finished(ctx, e)
	case roster.Aborted:
		if e.Rank >= 0 && e.Rank < len(s.Ranks) {
			s.failed(ctx, RankError{Rank: e.Rank, Text: "failed: " + e.Text, Consequence: e.Consequence})
		}
	}
	if s.OnEvent != nil {
		s.OnEvent(e)
	}
}

// signalled handles a signal sent to the launcher.
func (s *supervisor) signalled(ctx context.Context, sig os.Signal) {
	number, _ := sig.(syscall.Signal)
	if number == syscall.SIGTSTP {
		s.suspend(ctx)
		return
	}
	if number == syscall.SIGPIPE && (s.out.signal != 0 || s.out.timedOut || s.failing) {
		return // each line written to a pipe without a reader raises another one
	}
	name := unix.SignalName(number)
	if s.out.signal != 0 || s.out.timedOut || s.failing || s.done != "" {
		s.Say(name + ": killing the ranks")
		s.killAll(ctx)
		return
	}
	s.out.signal = number
	s.Say(name + ": the ranks stop at a common sweep and write what they have; once more kills them")
	s.send(syscall.SIGTERM)
}

// suspend stops the ranks, then this process, and lets the ranks go on after SIGCONT.
func (s *supervisor) suspend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, suspendTimeout)
	defer cancel()
	_ = each(s.ranks.hosts, func(_ string, h Host) error { h.Suspend(ctx); return nil })
	s.Say("SIGTSTP: the ranks are stopped until the launcher goes on")
	s.StopSelf()
	s.ranks.signal(syscall.SIGCONT)
	s.Say("SIGCONT: the ranks go on")
}

func (s *supervisor) timedOut(ctx context.Context) {
	if s.failing || s.done != "" || s.killed {
		return
	}
	s.killAfter(ctx, s.StopGrace)
	if s.out.signal != 0 {
		return // the ranks were already told to stop
	}
	s.out.timedOut = true
	s.Say(fmt.Sprintf("time limit of %s reached: the ranks stop at a common sweep and write what they have", s.Limit))
	s.send(syscall.SIGTERM)
}

func (s *supervisor) send(sig syscall.Signal) {
	s.sent[sig] = true
	s.ranks.signal(sig)
}

// conclude judges the run once all ranks have ended, and reports the failures that are neither the first cause nor
// consequences. A rank that failed when all outputs were in place is named, and does no harm.
func (s *supervisor) conclude() {
	if s.done == "" {
		s.out.Err = s.firstCause()
	}
	switch s.verdict {
	case "":
	case configs.Interrupted:
		s.out.stopped, s.out.killed = true, false
	default:
		s.out.stopped, s.out.killed, s.out.missed = false, false, s.verdict == configs.Missed
	}
	for i := range s.failures {
		f := &s.failures[i]
		switch {
		case f.Consequence || s.out.Err == error(f):
		case s.done != "":
			s.Say(fmt.Sprintf("rank %d on %s %s; the run was complete", f.Rank, f.Host, f.Text))
		default:
			s.Say(f.Error())
		}
	}
}

// firstCause returns the first failure that is not a consequence of another one, else the first failure.
func (s *supervisor) firstCause() error {
	for i := range s.failures {
		if !s.failures[i].Consequence {
			return &s.failures[i]
		}
	}
	if s.lost || len(s.failures) == 0 { // lost: these are consequences of the launcher's own signal
		return nil
	}
	return &s.failures[0]
}
