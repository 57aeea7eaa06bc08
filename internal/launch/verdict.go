package launch

import (
	"fmt"
	"regexp"
	"strings"
)

// maxVerdict bounds what a verdict keeps, in bytes.
const maxVerdict = 8 << 10

// maxTelling bounds the lines of a crash that tell why.
const maxTelling = 4

// telling are the lines of a crash that tell why: those of the Go runtime before its stacks and registers, and of the C
// library, which says what is wrong and then calls abort.
var telling = regexp.MustCompile(`^(panic: |fatal error: |runtime: |runtime/cgo: |unexpected fault address |` +
	`SIG[A-Z]+: |signal arrived during cgo execution|\[signal SIG[A-Z]+: |` +
	`terminate called |\*\*\* .* \*\*\*: terminated|` +
	`(malloc|calloc|realloc|free|munmap_chunk|malloc_consolidate)\(\): |corrupted |double free or corruption|` +
	`.*: Assertion .* failed\.$)`)

// crashed are the telling lines of which one at least stands in every crash; the others may also be said by a rank that
// goes on.
var crashed = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: )`)

// verdict keeps what of a rank's stderr says best why it ended: the goodbye of the program, else the lines of a crash
// that tell why, else the last line.
type verdict struct {
	rank    int
	goodbye []string // the line with which the program says goodbye, and those after it
	size    int      // of goodbye, in bytes
	told    []string // telling lines, without a line between them that says something else
	crash   bool     // one of them is of a crash
	stacks  bool     // the crash has come to its stacks: no line tells more
	last    string
}

// see takes a line. It reports whether the line is part of a goodbye, which nobody needs to see: whoever gets the
// verdict tells it.
func (v *verdict) see(line []byte) (goodbye bool) {
	text := strings.TrimRight(string(line), " \t\r")
	if v.goodbye == nil && !strings.HasPrefix(text, RankBinary+": ") {
		v.remember(text[:min(len(text), maxVerdict)])
		return false
	}
	if v.size += len(text); v.size > maxVerdict {
		return false
	}
	v.goodbye = append(v.goodbye, text)
	return true
}

func (v *verdict) remember(text string) {
	switch {
	case text == "":
	case v.stacks:
	case telling.MatchString(text):
		v.crash = v.crash || crashed.MatchString(text)
		if len(v.told) < maxTelling {
			v.told = append(v.told, text)
		}
	case v.crash && strings.HasPrefix(text, "goroutine "):
		v.stacks = true
	default:
		v.last = text
		if !v.crash {
			v.told = nil
		}
	}
}

// String returns the reason in one line, without the names of program and rank.
func (v *verdict) String() string {
	if v.goodbye != nil {
		text := strings.TrimPrefix(strings.Join(v.goodbye, "; "), RankBinary+": ")
		return strings.TrimPrefix(text, fmt.Sprintf("rank %d: ", v.rank))
	}
	if text := v.whyCrashed(); text != "" {
		return text
	}
	return v.last
}

// whyCrashed returns the telling lines of a crash, "" if there was none.
func (v *verdict) whyCrashed() string {
	if !v.crash {
		return ""
	}
	return strings.Join(v.told, "; ")
}
