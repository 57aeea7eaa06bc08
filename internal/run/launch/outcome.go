package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of the launcher and of ranks.
const (
	ExitOK      = 0
	ExitFailed  = 1
	ExitUsage   = 2   // a launcher without arguments
	ExitMissed  = 4   // all is written, but the tolerance was not met
	ExitTimeout = 124 // as of timeout(1)
	ExitSignal  = 128 // plus the signal's number
)

// Further exit codes of ranks.
const (
	RankConsequence = 3   // failed because another rank did
	RankInterrupted = 130 // has written what it had when it was told to stop
)

// ExitError ends the launcher with an exit code. The reason has been printed already.
type ExitError struct{ Code int }

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Outcome is how a run ended.
type Outcome struct {
	// Err is the first cause of a failure; nil if the ranks ended as they were told to.
	Err error
	// Report is the report of the run; nil if it was lost or the run failed.
	Report json.RawMessage
	// LostHosts are the hosts that became unreachable.
	LostHosts []string

	signal   syscall.Signal // the first signal sent to the launcher; 0 for none
	timedOut bool
	stopped  bool // ranks were told to end early and did
	missed   bool // ranks ended above the tolerance
	killed   bool // ranks were killed before they could write their results
}

// Stopped reports whether a signal or the time limit ended the run early.
func (o Outcome) Stopped() bool { return o.stopped }

// Killed reports whether a signal of the launcher ended ranks before they could write their results.
func (o Outcome) Killed() bool { return o.killed }

// MayRestart reports whether a restart may succeed: a rank died, hung or was cut off, or a failure came after the first
// sweep. A failure before the first sweep would repeat itself. A run that was told to stop, or whose ranks the launcher
// killed, is not restarted.
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
	case o.stopped: // a signal from elsewhere told a rank to stop
		return RankInterrupted
	case o.missed:
		return ExitMissed
	}
	return ExitOK
}

// RankError is the failure of a rank.
type RankError struct {
	Rank   int
	Host   string
	Text   string // what happened: "failed: ...", "was killed by SIGKILL ..."
	Sweeps int    // that the run had done, as far as the launcher knows
	Step   string // what Sweeps counts: "cycle", or "" for sweeps
	Died   bool   // the rank was killed or lost with its host; it did not fail by itself
	// Consequence says that the rank failed because another one did, and no failure of that one has been reported.
	Consequence bool
}

func (e *RankError) Error() string {
	last := "none"
	if e.Sweeps > 0 {
		last = strconv.Itoa(e.Sweeps - 1)
	}
	return fmt.Sprintf("rank %d on %s %s (last known %s: %s)", e.Rank, e.Host, e.Text, cmp.Or(e.Step, "sweep"), last)
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
		return fmt.Sprintf("failed with exit code %d without a message", e.Code)
	}
	return "failed: " + e.Said
}

// maxVerdict bounds the text that a verdict keeps, in bytes.
const maxVerdict = 8 << 10

// maxReasons bounds the lines of a crash that a verdict keeps.
const maxReasons = 4

// reasonLine matches the lines of a crash that give the reason: lines of the Go runtime before its stacks and
// registers, and lines of the C library before it calls abort.
var reasonLine = regexp.MustCompile(`^(panic: |fatal error: |runtime: |runtime/cgo: |unexpected fault address |` +
	`SIG[A-Z]+: |signal arrived during cgo execution|\[signal SIG[A-Z]+: |` +
	`terminate called |\*\*\* .* \*\*\*: terminated|` +
	`(malloc|calloc|realloc|free|munmap_chunk|malloc_consolidate)\(\): |corrupted |double free or corruption|` +
	`.*: Assertion .* failed\.$)`)

// crashLine matches the reason lines that prove a crash: each crash has at least one. A rank that goes on may write any
// of the others.
var crashLine = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: )`)

// verdict finds the reason for a rank's end in its stderr: the final message of the program, else the reason lines of a
// crash, else the last line.
type verdict struct {
	rank    int
	final   []string // the final message of the program: a line that begins with its name, and all lines after it
	size    int      // of final, in bytes
	reasons []string // consecutive reason lines
	crash   bool     // one of the reasons proves a crash
	stacks  bool     // the stacks of the crash have begun: no reason follows
	last    string
}

// add takes a line of stderr. It reports whether the line belongs to the final message, which must not be shown: the
// receiver of the verdict reports it.
func (v *verdict) add(line []byte) (final bool) {
	text := strings.TrimRight(string(line), " \t\r")
	if v.final == nil && !strings.HasPrefix(text, RankBinary+": ") {
		v.remember(text[:min(len(text), maxVerdict)])
		return false
	}
	if v.size += len(text); v.size > maxVerdict {
		return false
	}
	v.final = append(v.final, text)
	return true
}

func (v *verdict) remember(text string) {
	switch {
	case text == "":
	case v.stacks:
	case reasonLine.MatchString(text):
		v.crash = v.crash || crashLine.MatchString(text)
		if len(v.reasons) < maxReasons {
			v.reasons = append(v.reasons, text)
		}
	case v.crash && strings.HasPrefix(text, "goroutine "):
		v.stacks = true
	default:
		v.last = text
		if !v.crash {
			v.reasons = nil
		}
	}
}

// String returns the reason in one line, without the names of the program and the rank.
func (v *verdict) String() string {
	if v.final != nil {
		text := strings.TrimPrefix(strings.Join(v.final, "; "), RankBinary+": ")
		return strings.TrimPrefix(text, fmt.Sprintf("rank %d: ", v.rank))
	}
	if text := v.crashReason(); text != "" {
		return text
	}
	return v.last
}

// crashReason returns the reason lines of a crash; "" if there was no crash.
func (v *verdict) crashReason() string {
	if !v.crash {
		return ""
	}
	return strings.Join(v.reasons, "; ")
}
