package roster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
)

const (
	// MaxMessage is the maximum size of a message between ranks, in bytes.
	MaxMessage = wire.MaxMessage

	maxTag   = 200     // bytes of a tag
	maxLines = 1 << 16 // lines that other ranks may open here
)

// post carries messages between ranks: for each other rank and tag it has a wire.Stream. All frames to a rank have one
// subject; a frame's label has the sender's rank and the tag.
//
// The window is one chunk, so that a rank to which many send holds at most one chunk of each before it receives.
type post struct {
	conn pubsub.Conn
	id   Identity
	pace wire.Pace

	mu     sync.Mutex
	lines  map[line]*wire.Stream
	closed bool
}

// line is the way between this rank and another one, under one tag.
type line struct {
	peer int
	tag  string
}

// paceOf returns when the messages of a run are sent again. In a large run rank 0, to which all send, and ranks that
// share few cores take them later, and should not have to answer repetitions meanwhile.
func paceOf(size int) wire.Pace {
	ranks := time.Duration(size)
	return wire.Pace{First: max(wire.DefaultFirst, ranks*100*time.Microsecond),
		Last: max(wire.DefaultLast, ranks*time.Millisecond)}
}

// label returns the label of this rank's frames of l: its rank, u32, and the tag.
func (p *post) label(tag string) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(p.id.Rank))) + tag
}

// parseLabel returns the line to which a label belongs.
func (p *post) parseLabel(label string) (l line, ok bool) {
	if len(label) < 4 {
		return l, false
	}
	l = line{int(binary.LittleEndian.Uint32([]byte(label))), label[4:]}
	return l, l.peer < p.id.Size && l.peer != p.id.Rank && len(l.tag) <= maxTag
}

// receive handles a message from the server. It never blocks. A sender repeats what is refused here.
func (p *post) receive(m pubsub.Message) {
	f, err := wire.ParseFrame(m.Data)
	if err != nil {
		return
	}
	l, ok := p.parseLabel(f.Label())
	if !ok {
		return
	}
	if s := p.stream(l, &f); s != nil {
		s.Receive(f)
	}
}

// stream returns the stream of l. It makes one if need be: for a frame of another rank only if that begins a stream,
// and at most maxLines. It returns nil if there is none.
func (p *post) stream(l line, f *wire.Frame) *wire.Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.lines[l]
	if s != nil || f != nil && (!f.First() || p.closed || len(p.lines) >= maxLines) {
		return s
	}
	return p.make(l, wire.StreamOptions{Window: 1})
}

// make makes the stream of l, with the window of o. mu is held.
func (p *post) make(l line, o wire.StreamOptions) *wire.Stream {
	o.Conn, o.Subject, o.Label, o.Pace = p.conn, postSubject(p.id.RunID, l.peer), p.label(l.tag), p.pace
	s := wire.NewStream(o)
	if p.closed {
		s.Stop()
	}
	p.lines[l] = s
	return s
}

// open makes the stream of l, on which window messages of one chunk may be under way.
func (p *post) open(l line, window int, handle func([]byte)) (*wire.Stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines[l] != nil {
		return nil, fmt.Errorf("the stream %q to rank %d is open", l.tag, l.peer)
	}
	return p.make(l, wire.StreamOptions{Window: window, Lazy: true, Handle: handle}), nil
}

// send returns once the receiver has taken data.
func (p *post) send(ctx context.Context, to int, tag string, data []byte) error {
	err := p.hand(ctx, to, tag, data)
	if err == nil {
		err = p.flush(ctx, to, tag)
	}
	return err
}

// hand returns once data is on its way, from where it is sent again until the receiver has it or the post closes.
func (p *post) hand(ctx context.Context, to int, tag string, data []byte) error {
	return left(p.stream(line{to, tag}, nil).Send(ctx, data))
}

// flush returns once the receiver has taken all that was sent.
func (p *post) flush(ctx context.Context, to int, tag string) error {
	return left(p.stream(line{to, tag}, nil).Flush(ctx))
}

func (p *post) recv(ctx context.Context, from int, tag string) ([]byte, error) {
	data, err := p.stream(line{from, tag}, nil).Recv(ctx)
	return data, left(err)
}

// left returns ErrClosed for the error of a stream that ended with the comm.
func left(err error) error {
	if errors.Is(err, wire.ErrStreamClosed) {
		return ErrClosed
	}
	return err
}

// forget ends the streams whose tags begin with scope.
func (p *post) forget(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l, s := range p.lines {
		if strings.HasPrefix(l.tag, scope) {
			s.Stop()
			delete(p.lines, l)
		}
	}
}

// close ends all streams.
func (p *post) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.lines {
		s.Stop()
	}
}
