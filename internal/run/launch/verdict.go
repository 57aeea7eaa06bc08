package launch

import (
	"fmt"
	"regexp"
	"strings"
)

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
