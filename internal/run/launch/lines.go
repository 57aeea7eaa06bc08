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

// maxLine is the length, in bytes, above which a line is passed on in pieces.
const maxLine = 64 << 10

// lineWriter splits its input into lines and passes each one, without its line end, to emit. One goroutine uses it.
type lineWriter struct {
	emit func(line []byte)
	rest []byte // the beginning of an unfinished line
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

// Close passes on an unfinished last line.
func (w *lineWriter) Close() {
	if len(w.rest) > 0 {
		w.flush()
	}
}

// Tag says which tag precedes a line of a rank's output.
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

// Append appends the line of a rank, with its tag and a line end, to b.
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
