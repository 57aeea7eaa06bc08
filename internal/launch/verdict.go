package launch

import (
	"fmt"
	"strings"
)

// maxVerdict bounds what a verdict keeps, in bytes.
const maxVerdict = 8 << 10

// verdict keeps what of a rank's stderr says best why it ended: the goodbye of the program, else the begin of a
// crash of the Go runtime, else the last line.
type verdict struct {
	rank        int
	goodbye     []string // the line with which the program says goodbye, and those after it
	size        int      // of goodbye, in bytes
	crash, last string
}

// see takes a line. It reports whether the line is part of a goodbye, which nobody needs to see if the rank only
// follows others.
func (v *verdict) see(line []byte) (goodbye bool) {
	text := strings.TrimRight(string(line), " \t\r")
	if v.goodbye == nil && !strings.HasPrefix(text, RankBinary+": ") {
		v.remember(text)
		return false
	}
	if v.size += len(text); v.size > maxVerdict {
		return false
	}
	v.goodbye = append(v.goodbye, text)
	return true
}

func (v *verdict) remember(text string) {
	text = text[:min(len(text), maxVerdict)]
	switch {
	case text == "":
	case v.crash == "" && (strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")):
		v.crash = text
	default:
		v.last = text
	}
}

// String returns the reason in one line, without the names of program and rank.
func (v *verdict) String() string {
	switch {
	case v.goodbye != nil:
		text := strings.TrimPrefix(strings.Join(v.goodbye, "; "), RankBinary+": ")
		return strings.TrimPrefix(text, fmt.Sprintf("rank %d: ", v.rank))
	case v.crash != "":
		return v.crash
	}
	return v.last
}
