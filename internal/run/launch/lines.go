package launch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
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

// Greeting is the first message of a far end over a byte stream. Anything before it, such as the output of a login
// shell, is skipped.
type Greeting struct {
	Version string `json:"version"`
	Host    string `json:"host"`             // the machine's own host name
	Node    string `json:"node,omitempty"`   // identifies the machine independently of its names; "" if unknown
	Client  string `json:"client,omitempty"` // address from which ssh came; "" if unknown
}

const (
	greetingPrefix = "jacobi-launcher "
	maxChatter     = 1 << 20 // bytes that may precede the greeting
)

// ServeStream writes the greeting to out, then runs Serve with orders from in and news to out, as JSON.
func ServeStream(ctx context.Context, in io.Reader, out io.Writer, g Greeting, prepare Prepare) error {
	greeting, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\n%s%s\n", greetingPrefix, greeting); err != nil {
		return fmt.Errorf("greet the launcher: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders := make(chan Order)
	go func() {
		defer close(orders)
		for d := json.NewDecoder(in); ; {
			var o Order
			if d.Decode(&o) != nil {
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	e := json.NewEncoder(out)
	return Serve(ctx, orders, func(n News) error { return e.Encode(n) }, prepare)
}

// errNoGreeting is the error of a stream that ended, or brought maxChatter bytes, without a greeting.
var errNoGreeting = errors.New("no launcher answered")

// readGreeting reads r up to and including the greeting. The rest of r is news.
func readGreeting(r *bufio.Reader) (g Greeting, err error) {
	for chatter := 0; chatter < maxChatter; {
		line, err := r.ReadSlice('\n')
		chatter += len(line)
		if text, ok := strings.CutPrefix(string(line), greetingPrefix); ok && err == nil {
			if err := json.Unmarshal([]byte(text), &g); err != nil {
				return g, fmt.Errorf("greeting: %w", err)
			}
			return g, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	return g, errNoGreeting
}
