package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	window      = 64                     // messages that may be unacknowledged at a time
	room        = 256                    // messages that wait for the reader; the other side resends any beyond that
	resendAfter = 250 * time.Millisecond // without an acknowledgement; tests use less
	packetHead  = 256                    // bytes of a packet without Data and Why
	lastWords   = 5 * time.Second        // bounds the waits for the last acknowledgements and the other side's goodbye
)

// packet is one message over NATS. Core NATS may lose it, or deliver it twice after a reconnection.
type packet struct {
	Seq  uint64          `json:"seq,omitempty"` // number of Data: 1, 2, ...; 0: no data
	Ack  uint64          `json:"ack,omitempty"` // all packets up to this number have arrived
	Data json.RawMessage `json:"data,omitempty"`
	Bye  bool            `json:"bye,omitempty"` // the sender has left, for the reason Why
	Why  string          `json:"why,omitempty"`
}

var errLeft = errors.New("the other side has left")

// stream is one end of a reliable connection between a launcher and an agent: messages arrive once and in order.
type stream struct {
	post func([]byte)  // sends a packet, which may be lost
	max  int64         // bytes of a packet
	wait time.Duration // for an acknowledgement

	in     chan json.RawMessage // closed when the other side or this one has left
	gone   chan struct{}        // closed together with in
	moved  chan struct{}        // holds a token after an acknowledgement
	closed chan struct{}        // closed by leave
	resend sync.WaitGroup

	mu       sync.Mutex
	next     uint64 // sequence number of the next message
	unacked  []packet
	received uint64                     // all messages up to this one are in in
	early    map[uint64]json.RawMessage // messages that came before an earlier one, or found no room
	ended    bool                       // in is closed
	left     bool                       // leave was called
	why      string                     // reason of the other side's goodbye
}

func newStream(post func([]byte), max int64, wait time.Duration) *stream {
	s := &stream{post: post, max: max, wait: wait, next: 1, early: map[uint64]json.RawMessage{},
		in: make(chan json.RawMessage, room), gone: make(chan struct{}), moved: make(chan struct{}, 1),
		closed: make(chan struct{})}
	s.resend.Go(s.repeat)
	return s
}

// send waits for room in the window, but not for the acknowledgement.
func (s *stream) send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if int64(len(data)) > s.max-packetHead {
		return fmt.Errorf("a message of %d bytes, the server takes %d", len(data), s.max-packetHead)
	}
	for {
		s.mu.Lock()
		switch {
		case s.ended || s.left:
			s.mu.Unlock()
			return errLeft
		case len(s.unacked) < window:
			p := packet{Seq: s.next, Ack: s.received, Data: data}
			s.next++
			s.unacked = append(s.unacked, p)
			s.publish(p)
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		select {
		case <-s.moved:
		case <-s.gone:
		case <-s.closed:
		}
	}
}

func (s *stream) publish(p packet) {
	if b, err := json.Marshal(p); err == nil {
		s.post(b)
	}
}

// repeat resends all unacknowledged packets whenever the oldest of them has waited for at least s.wait.
func (s *stream) repeat() {
	tick := time.NewTicker(s.wait)
	defer tick.Stop()
	var oldest uint64 // first unacknowledged packet at the tick before
	for {
		select {
		case <-tick.C:
		case <-s.closed:
			return
		}
		s.mu.Lock()
		if len(s.unacked) > 0 && s.unacked[0].Seq == oldest {
			for _, p := range s.unacked {
				p.Ack = s.received
				s.publish(p)
			}
		}
		oldest = 0
		if len(s.unacked) > 0 {
			oldest = s.unacked[0].Seq
		}
		s.mu.Unlock()
	}
}

// receive handles a packet of the other side. It never waits.
func (s *stream) receive(p packet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left && !p.Bye {
		return
	}
	before := len(s.unacked)
	for len(s.unacked) > 0 && s.unacked[0].Seq <= p.Ack {
		s.unacked = s.unacked[1:]
	}
	if len(s.unacked) < before {
		select {
		case s.moved <- struct{}{}:
		default:
		}
	}
	if p.Seq > 0 && !s.ended {
		if p.Seq > s.received && p.Seq <= s.received+window {
			s.early[p.Seq] = p.Data
		}
		s.deliver()
		s.publish(packet{Ack: s.received})
	}
	if p.Bye && !s.ended {
		s.why = p.Why
		s.end()
	}
}

// deliver passes on the next messages, in order, as far as in has room. The other side resends the rest.
func (s *stream) deliver() {
	for data, ok := s.early[s.received+1]; ok; data, ok = s.early[s.received+1] {
		select {
		case s.in <- data:
			s.received++
			delete(s.early, s.received)
		default:
			return
		}
	}
}

func (s *stream) end() {
	s.ended = true
	close(s.in)
	close(s.gone)
}

// used reports whether anything was sent.
func (s *stream) used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next > 1
}

// reason returns the reason that the other side gave for leaving.
func (s *stream) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// drain waits, for at most lastWords, until the other side has acknowledged everything.
func (s *stream) drain() {
	late := time.After(lastWords)
	for {
		s.mu.Lock()
		empty := len(s.unacked) == 0
		s.mu.Unlock()
		if empty {
			return
		}
		select {
		case <-s.moved:
		case <-s.gone:
			return
		case <-late:
			return
		}
	}
}

// leave says goodbye. With wait it returns when the other side has left too, or after lastWords.
func (s *stream) leave(why string, wait bool) {
	s.mu.Lock()
	first := !s.left
	s.left = true
	s.mu.Unlock()
	if !first {
		return
	}
	close(s.closed)
	s.resend.Wait()
	late := time.NewTimer(lastWords)
	defer late.Stop()
	again := time.NewTicker(s.wait)
	defer again.Stop()
	for s.publish(packet{Bye: true, Why: why}); wait; s.publish(packet{Bye: true, Why: why}) {
		select {
		case <-s.gone:
			return
		case <-late.C:
			wait = false
		case <-again.C:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.end()
	}
}
