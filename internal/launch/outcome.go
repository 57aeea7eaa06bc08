package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of the launcher.
const (
	ExitOK      = 0
	ExitFailed  = 1
	ExitTimeout = 124 // as of timeout(1)
	ExitSignal  = 128 // plus the signal's number
)

// Exit codes of a rank.
const (
	rankConsequence = 3
	rankInterrupted = 130
)

// Outcome is how a run ended.
type Outcome struct {
	// Err is the first cause of a failure, nil if the ranks did what they were told.
	Err error
	// Report is the report of the run; nil if none came, although a run that did not fail sends one.
	Report json.RawMessage
	// LostHosts are those that could not be reached any more.
	LostHosts []string

	signal   syscall.Signal // the first that the launcher got; 0 for none
	timedOut bool
	stopped  bool // ranks ended before their work was done, because they were told to
	killed   bool // ranks did not live to write what they had
}

// Stopped says whether the run was ended before its time by a signal or by its time limit.
func (o Outcome) Stopped() bool { return o.stopped }

// Killed says whether ranks ended by a signal of the launcher, so that they could not write what they had.
func (o Outcome) Killed() bool { return o.killed }

// MayRestart says whether another start may end better: a rank died, hung or was cut off, or something failed once the
// ranks swept. What fails before, fails again; and who was told to stop, or was killed by the launcher, is not started
// again.
func (o Outcome) MayRestart() bool {
	if o.Err == nil || o.signal != 0 || o.timedOut {
		return false
	}
	f, ok := errors.AsType[*RankError](o.Err)
	return ok && (f.Died || f.Consequence || f.Sweeps > 0)
}

// ExitCode returns the exit code of the launcher.
func (o Outcome) ExitCode() int {
	switch {
	case o.Err != nil:
		return ExitFailed
	case o.stopped && o.timedOut:
		return ExitTimeout
	case o.stopped && o.signal != 0:
		return ExitSignal + int(o.signal)
	case o.stopped: // somebody else told a rank to stop
		return rankInterrupted
	}
	return ExitOK
}

// RankError is the failure of a rank.
type RankError struct {
	Rank   int
	Host   string
	Text   string // what happened: "failed: ...", "was killed by SIGKILL ..."
	Sweeps int    // that the run had done, as far as the launcher knows
	Died   bool   // it was killed, or lost with its host, rather than having failed by itself
	// Consequence says that the rank failed because of another one, which nobody has heard of.
	Consequence bool
}

func (e *RankError) Error() string {
	last := "none"
	if e.Sweeps > 0 {
		last = strconv.Itoa(e.Sweeps - 1)
	}
	return fmt.Sprintf("rank %d on %s %s (last known sweep: %s)", e.Rank, e.Host, e.Text, last)
}

// String says what happened to a rank that failed.
func (e Exit) String() string {
	switch {
	case e.Lost != "":
		return "was lost with its host: " + e.Lost
	case e.Signal != 0:
		text := fmt.Sprintf("was killed by %s (%v)", unix.SignalName(e.Signal), e.Signal)
		switch {
		case e.OOM:
			text += ": the kernel has killed processes because memory ran out"
		case e.Signal == syscall.SIGKILL:
			text += "; if nobody did that, memory ran out: see dmesg"
		case e.Said != "":
			text += ": " + e.Said
		}
		return text
	case e.Said == "":
		return fmt.Sprintf("failed with exit code %d and without a word", e.Code)
	}
	return "failed: " + e.Said
}
