package launch

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/awake"
	"jacobi/internal/roster"
)

// Job is the ranks to start and how to watch them.
type Job struct {
	Path  string   // of the program of a rank; empty: RankBinary, which every host finds for itself
	Args  []string // of each rank
	Dir   string   // working directory of each rank; empty: that of what starts it
	Env   []string // of each rank, over the environment of what starts it; HostEnv and its identity join it
	RunID string
	Ranks []Placement // by rank
	// Hosts are the hosts in Ranks, by name; Run closes them. nil: all ranks run on this machine.
	Hosts map[string]Host
	// HostEnv is what the ranks of a host get besides Env.
	HostEnv map[string][]string

	// Output gets whole lines of a rank's output, from several goroutines.
	Output func(rank int, s Stream, line []byte)
	// Say gets the launcher's own announcements.
	Say func(text string)
	// Events brings what ranks say of themselves, and OnEvent, if not nil, gets it in turn.
	Events  <-chan roster.Event
	OnEvent func(roster.Event)
	// Abort tells all ranks that the run has failed.
	Abort func(context.Context, roster.AbortError) error
	// Signals brings what the launcher was sent: the first one stops the run, the second one kills it. SIGTSTP suspends
	// it: the ranks are stopped, then StopSelf is called, then the ranks go on.
	Signals  <-chan os.Signal
	StopSelf func() // stops this process and returns once somebody lets it go on

	Timeout   time.Duration // after which the run is stopped; 0 for none
	Limit     string        // the time limit of which Timeout is left, as the user wrote it
	StopGrace time.Duration // how long ranks may take to stop at the timeout before they are killed
	FailGrace time.Duration // how long ranks may take to end after the failure of another one
}

const (
	abortTimeout = time.Second
	// eventDelay is how long the last event of a rank that has ended may be on its way.
	eventDelay = time.Second
	// suspendTimeout is how long other machines may take to stop their ranks.
	suspendTimeout = 2 * time.Second
)

// supervisor is a run in progress. One goroutine owns it.
type supervisor struct {
	*Job
	crew     *crew
	failures []RankError // in the order in which they were seen
	sweeps   int         // that the run has done, as far as is known
	failing  bool
	lost     bool // a rank ended by a signal of ours, so that the others can only be ended as well
	sent     map[syscall.Signal]bool
	kill     <-chan time.Time // when patience ends
	out      Outcome
}

// Run starts the ranks and returns when all of them have ended. An error means that they could not be started.
// The end of ctx kills them.
func (j *Job) Run(ctx context.Context) (Outcome, error) {
	c, err := startCrew(ctx, j)
	if err != nil {
		return Outcome{}, err
	}
	s := &supervisor{Job: j, crew: c, sent: map[syscall.Signal]bool{}}
	s.watch(ctx)
	s.settle()
	s.out.Err = s.firstCause()
	s.sayOthers()
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
	for len(s.crew.running()) > 0 {
		select {
		case e := <-s.crew.exits:
			s.ended(ctx, e)
		case e := <-s.Events:
			s.event(ctx, e)
		case sig := <-s.Signals:
			s.signalled(ctx, sig)
		case <-timeout:
			s.timedOut(ctx)
		case <-s.kill:
			s.kill = nil
			s.Say(fmt.Sprintf("%s did not end in time: killed", roster.FormatRanks(s.crew.running())))
			s.send(syscall.SIGKILL)
		case <-done:
			s.send(syscall.SIGKILL)
			done = nil
		}
	}
}

// settle waits for the report, which may still be on its way.
func (s *supervisor) settle() {
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

// ended takes the end of a rank.
func (s *supervisor) ended(ctx context.Context, e Exit) {
	s.crew.note(e)
	switch {
	case e.Lost != "":
		if host := s.Ranks[e.Rank].Host; !slices.Contains(s.out.LostHosts, host) {
			s.out.LostHosts = append(s.out.LostHosts, host)
		}
	case e.Signal == 0 && e.Code == 0:
		return
	case e.Signal == 0 && e.Code == rankInterrupted:
		s.out.stopped = true
		return
	case e.Signal != 0 && s.sent[e.Signal]:
		s.out.killed = true
		if s.failing {
			return
		}
		s.lost, s.out.stopped = true, true
		if e.Signal == syscall.SIGTERM { // it did not listen yet; without it the others wait in vain
			s.fail(ctx, roster.AbortError{Rank: -1, Cause: "the run was stopped before all ranks had begun"})
		}
		return
	}
	f := RankError{Rank: e.Rank, Host: s.Ranks[e.Rank].Host, Text: e.String(), Sweeps: s.sweeps,
		Died:        e.Lost != "" || e.Signal != 0,
		Consequence: e.Lost == "" && e.Signal == 0 && e.Code == rankConsequence}
	s.failed(ctx, f)
}

// failed takes the failure of a rank, from whichever source it is known first.
func (s *supervisor) failed(ctx context.Context, f RankError) {
	for _, known := range s.failures {
		if known.Rank == f.Rank {
			return
		}
	}
	s.failures = append(s.failures, f)
	s.fail(ctx, roster.AbortError{Rank: f.Rank, Host: f.Host, Cause: f.Text, Consequence: f.Consequence})
}

// fail ends the other ranks, once one has failed.
func (s *supervisor) fail(ctx context.Context, why roster.AbortError) {
	if s.failing {
		return
	}
	s.failing = true
	s.kill = awake.Of(ctx).NewTimer(s.FailGrace).C
	if s.Abort != nil && len(s.crew.running()) > 0 {
		ctx, cancel := context.WithTimeout(ctx, abortTimeout)
		defer cancel()
		_ = s.Abort(ctx, why) // ranks that do not hear it hear the signal
	}
	s.send(syscall.SIGTERM)
}

// event takes what a rank says of itself.
func (s *supervisor) event(ctx context.Context, e roster.Event) {
	s.sweeps = max(s.sweeps, e.Sweeps)
	switch e.Kind {
	case roster.Finished:
		if e.Report != nil {
			s.out.Report = e.Report
		}
	case roster.Aborted:
		if e.Rank >= 0 && e.Rank < len(s.Ranks) {
			s.failed(ctx, RankError{Rank: e.Rank, Host: s.Ranks[e.Rank].Host, Text: "failed: " + e.Text,
				Sweeps:      s.sweeps,
				Consequence: e.Consequence})
		}
	}
	if s.OnEvent != nil {
		s.OnEvent(e)
	}
}

// signalled takes a signal that the launcher was sent.
func (s *supervisor) signalled(ctx context.Context, sig os.Signal) {
	number, _ := sig.(syscall.Signal)
	if number == syscall.SIGTSTP {
		s.suspend(ctx)
		return
	}
	if number == syscall.SIGPIPE && (s.out.signal != 0 || s.out.timedOut || s.failing) {
		return // every line that nobody reads brings one
	}
	name := unix.SignalName(number)
	if s.out.signal != 0 || s.out.timedOut || s.failing {
		s.Say(name + ": killing the ranks")
		s.send(syscall.SIGKILL)
		return
	}
	s.out.signal = number
	s.Say(name + ": the ranks stop at a common sweep and write what they have; once more kills them")
	s.send(syscall.SIGTERM)
}

// suspend stops the ranks and this process until somebody lets it go on.
func (s *supervisor) suspend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, suspendTimeout)
	defer cancel()
	s.crew.suspend(ctx)
	s.Say("SIGTSTP: the ranks are stopped until the launcher goes on")
	s.StopSelf()
	s.crew.signal(syscall.SIGCONT)
	s.Say("SIGCONT: the ranks go on")
}

func (s *supervisor) timedOut(ctx context.Context) {
	if s.failing {
		return
	}
	s.kill = awake.Of(ctx).NewTimer(s.StopGrace).C
	if s.out.signal != 0 {
		return // they were told already
	}
	s.out.timedOut = true
	s.Say(fmt.Sprintf("time limit of %s reached: the ranks stop at a common sweep and write what they have", s.Limit))
	s.send(syscall.SIGTERM)
}

func (s *supervisor) send(sig syscall.Signal) {
	s.sent[sig] = true
	s.crew.signal(sig)
}

// sayOthers tells of failures that are neither the first cause nor consequences.
func (s *supervisor) sayOthers() {
	for i := range s.failures {
		if f := &s.failures[i]; !f.Consequence && s.out.Err != error(f) {
			s.Say(f.Error())
		}
	}
}

// firstCause returns the failure to blame: the first that is no consequence of another one, else the first.
func (s *supervisor) firstCause() error {
	for i := range s.failures {
		if !s.failures[i].Consequence {
			return &s.failures[i]
		}
	}
	if s.lost || len(s.failures) == 0 { // lost: consequences of what the launcher did
		return nil
	}
	return &s.failures[0]
}
