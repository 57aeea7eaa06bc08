package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/base/pubsub"
)

// MaxMessage is the maximum size of a message on a Stream, in bytes.
const MaxMessage = 64 << 20

// The defaults of StreamOptions.
const (
	DefaultWindow = 64
	DefaultFirst  = 100 * time.Millisecond
	DefaultLast   = time.Second
)

// maxReason bounds the reason of a goodbye, in bytes.
const maxReason = 4 << 10

var (
	// ErrLeft reports that the other end of a stream has said goodbye.
	ErrLeft = errors.New("the other side has left")
	// ErrStreamClosed reports that this end of a stream was closed.
	ErrStreamClosed = errors.New("the stream is closed")
)

// Pace is the retransmission backoff: First, then twice as long each time, at most Last.
type Pace struct{ First, Last time.Duration }

func (p Pace) next(pause time.Duration) time.Duration { return min(2*pause, p.Last) }

// StreamOptions are the arguments of NewStream. Both ends must have the same Window.
type StreamOptions struct {
	Conn    pubsub.Conn
	Subject string // on which the other end listens
	Label   string // in all frames of this end, for subjects with several streams; at most 255 bytes
	Window  int    // chunks that may be unacknowledged; default DefaultWindow
	// Lazy leaves an acknowledgement to the next chunk in the other direction, or to the repetition of the chunk: for
	// streams whose ends take turns.
	Lazy bool
	// Handle, if not nil, is called with each message in place of Recv, by Receive. The user then calls Receive from
	// one goroutine at a time, and Handle must not wait for this stream.
	Handle func(message []byte)
	Pace   Pace // of chunks that are not acknowledged; default DefaultFirst and DefaultLast
}

// Stream is one end of a reliable stream of messages in both directions between two processes, over a connection that
// may lose, repeat and reorder what it carries.
//
//   - Messages arrive whole, once, and in the order of Send, as long as both ends live: also when connections break or
//     the server restarts. A message is cut into chunks, which are sent again until the other end acknowledges them.
//   - A chunk is acknowledged when Recv takes it, or with Lazy later. An end keeps at most Window chunks of chunkBytes
//     that were not acknowledged, Window chunks that were not taken, and the messages of Send and Recv.
//   - Every wait ends with its context, with Close or Stop, and with the goodbye of the other end. A stream does not
//     watch whether the other end lives: its user does, and gives contexts their deadlines.
//   - A Send or Flush whose context ends leaves what was sent on its way: it may arrive, and later messages follow it.
//     Only where Send has sent a part of its message, the stream fails.
//   - A frame that is damaged, repeated, outside the window or that acknowledges what was not sent changes nothing.
//     The checksum is against accidents; where strangers may publish, the connection has to be sealed.
//
// Send and Flush may be called from several goroutines, Recv from one. The user passes the frames that arrive to
// Receive.
type Stream struct {
	o    StreamOptions
	turn chan struct{} // holds a token while a Send is at its message

	mu      sync.Mutex
	changed chan struct{} // closed, and made again, after each change that a wait may be for
	err     error         // why the stream failed, or ErrStreamClosed; ends all calls
	leaving bool          // Close was called
	goodbye string        // the reason of Close
	left    bool          // the other end has said goodbye
	reason  string        // of the other end's goodbye

	sent      uint64     // the last chunk sent
	acked     uint64     // the last chunk that the other end has taken
	unacked   []outChunk // the chunks between them
	theirHeld uint64     // chunks up to this one need not be sent again, though they may not be taken
	pause     time.Duration
	since     time.Time   // when the other end took a chunk last, or chunks were sent again
	timer     *time.Timer // for unacked; nil before the first chunk
	armed     bool        // timer runs

	taken   uint64           // the last chunk taken
	held    uint64           // the last chunk that has arrived with all before it
	arrived map[uint64]Frame // chunks not taken
	partial []byte           // chunks taken of a message; nil between messages
	total   uint64           // size of the message of partial
}

// NewStream returns one end of a stream. Nothing is sent before the first Send or Close.
func NewStream(o StreamOptions) *Stream {
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.Pace == (Pace{}) {
		o.Pace = Pace{First: DefaultFirst, Last: DefaultLast}
	}
	return &Stream{o: o, turn: make(chan struct{}, 1), changed: make(chan struct{}), arrived: map[uint64]Frame{}}
}

// await returns once ready, which is called with mu held, returns true or an error.
func (s *Stream) await(ctx context.Context, ready func() (bool, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		changed := s.changed
		s.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		s.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// notify wakes all waits.
func (s *Stream) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// over returns the error of a call that can do nothing any more.
func (s *Stream) over() error {
	switch {
	case s.err != nil:
		return s.err
	case s.leaving:
		return ErrStreamClosed
	case s.left:
		return ErrLeft
	}
	return nil
}

// fail ends all calls with err.
func (s *Stream) fail(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	s.rest()
	s.notify()
}

// rest ends the repetitions.
func (s *Stream) rest() {
	s.unacked = nil
	if s.timer != nil {
		s.timer.Stop()
		s.armed = false
	}
}

// Send sends data. It waits until the window has room, not until the message is taken; see Flush. data may be changed
// afterwards.
func (s *Stream) Send(ctx context.Context, data []byte) error {
	if len(data) > MaxMessage {
		return fmt.Errorf("%d bytes, at most %d go in a message", len(data), MaxMessage)
	}
	limit := s.o.Conn.MaxPayload()
	size := min(chunkBytes, int(limit)-frameHead-len(s.o.Label)-frameTail)
	if size <= 0 {
		return fmt.Errorf("the server's max_payload of %d is too small", limit)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	for begin, end := 0, 0; ; begin = end {
		end = min(begin+size, len(data))
		err := s.await(ctx, func() (bool, error) {
			if err := s.over(); err != nil {
				return false, err
			}
			if len(s.unacked) == s.o.Window {
				return false, nil
			}
			return true, s.sendChunk(data[begin:end], uint64(len(data)), end == len(data))
		})
		if err != nil && begin > 0 {
			s.mu.Lock()
			if s.over() == nil {
				s.fail(fmt.Errorf("a message was sent in part: %w", err))
			}
			s.mu.Unlock()
		}
		if err != nil || end == len(data) {
			return err
		}
	}
}

// Flush waits until the other end's Recv has taken all that was sent.
func (s *Stream) Flush(ctx context.Context) error {
	return s.await(ctx, func() (bool, error) {
		if s.acked == s.sent {
			return true, nil
		}
		return false, s.over()
	})
}

// Recv waits for the next message. Messages that have arrived are returned also after the other end's goodbye.
func (s *Stream) Recv(ctx context.Context) (message []byte, err error) {
	err = s.await(ctx, func() (ok bool, err error) {
		if message = s.next(); message != nil {
			return true, nil
		}
		return false, s.over()
	})
	return message, err
}

// next takes the next message, nil if it has not arrived. It is called with mu held.
func (s *Stream) next() (message []byte) {
	for s.arrived[s.taken+1].seq > 0 && message == nil && s.err == nil {
		message = s.take(s.arrived[s.taken+1])
	}
	return message
}

// Used reports whether anything was sent.
func (s *Stream) Used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent > 0
}

// Reason returns the reason that the other end gave for leaving; "" if it has given none.
func (s *Stream) Reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Close says goodbye, with a reason, and ends all calls of this end, which may have failed before. What was not taken
// by then may be lost; see Flush. The goodbye may be lost, too; see AwaitEnd.
func (s *Stream) Close(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving || errors.Is(s.err, ErrStreamClosed) {
		return
	}
	s.leaving, s.goodbye = true, reason[:min(len(reason), maxReason)]
	s.rest()
	s.notify()
	s.sayGoodbye()
}

func (s *Stream) sayGoodbye() { s.publish(s.encode(Frame{kind: frameBye, data: []byte(s.goodbye)})) }

// AwaitEnd repeats the goodbye of Close until the other end says goodbye.
func (s *Stream) AwaitEnd(ctx context.Context) error {
	for pause := s.o.Pace.First; ; pause = s.o.Pace.next(pause) {
		once, cancel := context.WithTimeout(ctx, pause)
		err := s.await(once, func() (bool, error) {
			if errors.Is(s.err, ErrStreamClosed) || errors.Is(s.err, pubsub.ErrClosed) {
				return false, s.err
			}
			return s.left, nil
		})
		late := once.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !late {
			return err
		}
		s.mu.Lock()
		s.sayGoodbye()
		s.mu.Unlock()
	}
}

// Stop ends this end without a goodbye.
func (s *Stream) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(ErrStreamClosed)
	s.arrived, s.partial = nil, nil
}

// Ask sends a request to whoever listens on subject, and repeats it with pauses of pace until accept has taken an
// answer. An answer for which accept returns false counts as none.
//
// The request arrives at least once, and may arrive several times, one of them after Ask has returned: repeating it
// must not change what it does. Ask needs no memory beyond one answer. It waits for the listener, for the server and
// for the connection as long as ctx allows, and then returns the cause of ctx. It fails before only if the connection
// is closed or the request is too large for the server.
func Ask(ctx context.Context, conn pubsub.Conn, subject string, data []byte, pace Pace,
	accept func(pubsub.Message) bool) error {
	for patience := pace.First; ; patience = pace.next(patience) {
		once, cancel := context.WithTimeout(ctx, patience)
		m, err := conn.RequestWithContext(once, subject, data)
		cancel()
		switch {
		case err == nil && accept(m):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, pubsub.ErrClosed), errors.Is(err, nats.ErrMaxPayload):
			return err
		}
		select { // nobody listens yet, or the client reconnects
		case <-time.After(pace.First / 4):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
