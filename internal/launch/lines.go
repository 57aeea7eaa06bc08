package launch

import (
	"bytes"
	"fmt"
)

// Stream is one of the two outputs of a process.
type Stream uint8

// The two streams.
const (
	Stdout Stream = iota
	Stderr
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	if s == Stdout {
		return "stdout"
	}
	return "stderr"
}

// maxLine is the longest piece of a line, in bytes, that is passed on at once; longer lines come in pieces.
const maxLine = 64 << 10

// lineWriter cuts what is written to it into lines and passes each one, without its end, to emit. It is
// used by one goroutine.
type lineWriter struct {
	emit func(line []byte)
	rest []byte // the begin of a line whose end has not come
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, after, ended := bytes.Cut(p, []byte{'\n'})
		if room := maxLine - len(w.rest); len(line) > room {
			line, after, ended = p[:room], p[room:], true
		}
		w.rest = append(w.rest, line...)
		if ended {
			w.flush()
		}
		p = after
	}
	return n, nil
}

func (w *lineWriter) flush() {
	w.emit(w.rest)
	w.rest = w.rest[:0]
}

// Close passes on a last line that has no end.
func (w *lineWriter) Close() {
	if len(w.rest) > 0 {
		w.flush()
	}
}

// Tag says what stands before a line of a rank's output.
type Tag uint8

// The tags.
const (
	TagRank   Tag = iota // [3] line
	TagStream            // [3]<stderr> line
	TagNone              // line
)

// ParseTag reads "rank", "stream" or "none".
func ParseTag(name string) (Tag, error) {
	switch name {
	case "rank":
		return TagRank, nil
	case "stream":
		return TagStream, nil
	case "none":
		return TagNone, nil
	}
	return 0, fmt.Errorf("%q: allowed are rank, stream and none", name)
}

// Append appends to b the line of a rank with its tag and a line end.
func (t Tag) Append(b []byte, rank int, stream Stream, line []byte) []byte {
	switch t {
	case TagRank:
		b = fmt.Appendf(b, "[%d] ", rank)
	case TagStream:
		b = fmt.Appendf(b, "[%d]<%s> ", rank, stream)
	}
	b = append(b, line...)
	return append(b, '\n')
}
