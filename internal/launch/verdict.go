package launch

import "strings"

// maxVerdict bounds the line that a verdict keeps, in bytes.
const maxVerdict = 2 << 10

// verdict keeps the line of a rank's stderr that best says why it ended: the one with which the program
// says goodbye, else the begin of a crash of the Go runtime, else the last one.
type verdict struct {
	crash, goodbye, last string
}

func (v *verdict) see(line []byte) {
	text := strings.TrimSpace(string(line[:min(len(line), maxVerdict)]))
	switch {
	case text == "":
	case strings.HasPrefix(text, RankBinary+": "):
		v.goodbye = strings.TrimPrefix(text, RankBinary+": ")
	case v.crash == "" && (strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")):
		v.crash = text
	default:
		v.last = text
	}
}

func (v *verdict) String() string {
	switch {
	case v.goodbye != "":
		return v.goodbye
	case v.crash != "":
		return v.crash
	}
	return v.last
}
