package wire

import (
	"errors"
	"fmt"
	"time"

	"jacobi/internal/base/pubsub"
)

// The methods of this file are called with mu held, but for Receive and resend.

// outChunk is a chunk, encoded.
type outChunk struct {
	seq   uint64
	frame []byte
}

func (s *Stream) sendChunk(data []byte, total uint64, last bool) error {
	s.sent++
	b := s.encode(Frame{kind: frameChunk, last: last, seq: s.sent, total: total, data: data})
	s.unacked = append(s.unacked, outChunk{s.sent, b})
	if len(s.unacked) == 1 {
		s.rearm(s.o.Pace.First)
	}
	s.publish(b)
	return s.err
}

func (s *Stream) encode(f Frame) []byte {
	f.label, f.taken, f.held = s.o.Label, s.taken, s.held
	return f.encode()
}

// publish sends a frame. One that is lost is sent again; any other error fails the stream.
func (s *Stream) publish(b []byte) {
	if err := s.o.Conn.Publish(s.o.Subject, b); err != nil && !errors.Is(err, pubsub.ErrLost) {
		s.fail(err)
	}
}

func (s *Stream) rearm(pause time.Duration) {
	s.pause = pause
	if s.timer == nil {
		s.timer = time.AfterFunc(pause, s.resend)
		return
	}
	s.timer.Reset(pause)
}

// resend sends the chunks again that the other end may not have. If it has all of them, resend asks whether they were
// taken: the acknowledgement may be lost.
func (s *Stream) resend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unacked) == 0 {
		return
	}
	s.rearm(s.o.Pace.next(s.pause))
	ask := true
	for _, c := range s.unacked {
		if c.seq > s.theirHeld {
			ask = false
			refresh(c.frame, s.taken, s.held)
			s.publish(c.frame)
		}
	}
	if ask {
		s.publish(s.encode(Frame{kind: frameAsk}))
	}
}

// take moves the chunk f to the end of partial and acknowledges it. After the last chunk it returns the message.
func (s *Stream) take(f Frame) []byte {
	delete(s.arrived, f.seq)
	s.taken = f.seq
	if s.partial == nil {
		s.partial, s.total = make([]byte, 0, f.total), f.total
	}
	size := uint64(len(s.partial) + len(f.data))
	if f.total != s.total || size > s.total || f.last != (size == s.total) {
		s.fail(fmt.Errorf("chunk %d makes %d bytes of %d, and %d were announced", f.seq, size, f.total, s.total))
		return nil
	}
	s.partial = append(s.partial, f.data...)
	s.publish(s.encode(Frame{kind: frameAck}))
	if !f.last {
		return nil
	}
	message := s.partial
	s.partial = nil
	return message
}

// Receive handles a frame of the other end. It does not wait.
func (s *Stream) Receive(f Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.err != nil || s.leaving) && f.kind != frameBye {
		return
	}
	s.acknowledge(&f)
	answer := f.kind == frameAsk
	switch f.kind {
	case frameChunk:
		answer = s.keep(f)
	case frameBye:
		if !s.left {
			s.left, s.reason = true, string(f.data)
			s.rest()
			s.notify()
		}
	}
	if answer {
		s.publish(s.encode(Frame{kind: frameAck}))
	}
}

// acknowledge drops the chunks that the other end has taken.
func (s *Stream) acknowledge(f *Frame) {
	if f.taken > f.held || f.held > s.sent {
		return
	}
	s.theirHeld = max(s.theirHeld, f.held)
	if f.taken <= s.acked {
		return
	}
	for s.acked = f.taken; len(s.unacked) > 0 && s.unacked[0].seq <= s.acked; s.unacked = s.unacked[1:] {
		s.unacked[0].frame = nil
	}
	if len(s.unacked) > 0 {
		s.rearm(s.o.Pace.First)
	} else {
		s.timer.Stop()
	}
	s.notify()
}

// keep keeps a chunk within the window. It reports whether the chunk has come before: then the other end has missed an
// acknowledgement, or waits for Recv.
func (s *Stream) keep(f Frame) (before bool) {
	switch {
	case s.left, f.total > MaxMessage, f.seq > s.taken+uint64(s.o.Window):
		return false
	case f.seq <= s.held || s.arrived[f.seq].seq > 0:
		return true
	}
	s.arrived[f.seq] = f
	if f.seq != s.held+1 {
		return false
	}
	for s.arrived[s.held+1].seq > 0 {
		s.held++
	}
	s.notify()
	return false
}
