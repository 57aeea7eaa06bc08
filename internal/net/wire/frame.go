package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"jacobi/internal/base/pubsub"
)

// Frame is a message between the two ends of a Stream: a chunk of one of the user's messages, an acknowledgement, or a
// goodbye. It is encoded, little-endian, as magic u32, kind u8, last u8, length of label u8, zero u8, seq u64, taken
// u64, held u64, total u64, label, data, then u32, the CRC-32C of all bytes before it.
type Frame struct {
	kind  frameKind
	last  bool // the last chunk of a message
	label string
	seq   uint64 // numbers the chunks: 1, 2, ...; 0 in other frames
	taken uint64 // the sender's Recv has taken the chunks up to this one
	held  uint64 // the sender has the chunks up to this one
	total uint64 // bytes of the chunk's message
	data  []byte // of a chunk; the reason of a goodbye
}

type frameKind byte

const (
	frameChunk frameKind = iota
	frameAck
	frameAsk // wants a frameAck
	frameBye
	frameKinds
)

const (
	frameMagic = 0x5453424a // "JBST"
	frameHead  = 4 + 4 + 4*8
	frameTail  = 4
	takenAt    = 16 // offset of taken and held in an encoded frame

	// chunkBytes is the maximum size of a chunk. NATS has its best throughput near it.
	chunkBytes = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func (f *Frame) encode() []byte {
	b := make([]byte, 0, frameHead+len(f.label)+len(f.data)+frameTail)
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	last := byte(0)
	if f.last {
		last = 1
	}
	b = append(b, byte(f.kind), last, byte(len(f.label)), 0)
	b = binary.LittleEndian.AppendUint64(b, f.seq)
	b = binary.LittleEndian.AppendUint64(b, f.taken)
	b = binary.LittleEndian.AppendUint64(b, f.held)
	b = binary.LittleEndian.AppendUint64(b, f.total)
	b = append(b, f.label...)
	b = append(b, f.data...)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// refresh sets the acknowledgement in b, an encoded frame.
func refresh(b []byte, taken, held uint64) {
	binary.LittleEndian.PutUint64(b[takenAt:], taken)
	binary.LittleEndian.PutUint64(b[takenAt+8:], held)
	body := b[:len(b)-frameTail]
	binary.LittleEndian.PutUint32(b[len(body):], checksum(body))
}

// ParseFrame decodes b. The Frame shares b's memory. The error says why b is no frame, or that it is damaged.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < frameHead+frameTail || binary.LittleEndian.Uint32(b) != frameMagic {
		return Frame{}, errors.New("not a frame of a stream")
	}
	body := b[:len(b)-frameTail]
	want := binary.LittleEndian.Uint32(b[len(body):])
	if got := checksum(body); got != want {
		return Frame{}, fmt.Errorf("checksum %08x, the frame says %08x", got, want)
	}
	kind, last, label := frameKind(b[4]), b[5], int(b[6])
	if kind >= frameKinds || last > 1 || b[7] != 0 || len(body) < frameHead+label {
		return Frame{}, errors.New("bad head of a frame")
	}
	f := Frame{
		kind:  kind,
		last:  last == 1,
		label: string(body[frameHead : frameHead+label]),
		seq:   binary.LittleEndian.Uint64(b[8:]),
		taken: binary.LittleEndian.Uint64(b[takenAt:]),
		held:  binary.LittleEndian.Uint64(b[takenAt+8:]),
		total: binary.LittleEndian.Uint64(b[takenAt+16:]),
		data:  body[frameHead+label:],
	}
	if (kind == frameChunk) != (f.seq > 0) || len(f.data) > chunkBytes ||
		kind == frameChunk && uint64(len(f.data)) > f.total {
		return Frame{}, fmt.Errorf("frame %d of kind %d with %d bytes of %d", f.seq, kind, len(f.data), f.total)
	}
	return f, nil
}

// Label returns the label of the sender's end.
func (f *Frame) Label() string { return f.label }

// First reports whether the frame is the first one with data that its sender sent on the stream.
func (f *Frame) First() bool { return f.seq == 1 }

// Goodbye reports whether the sender has left.
func (f *Frame) Goodbye() bool { return f.kind == frameBye }

// The methods of this file are called with mu held, but for Receive, accept and resend.

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

// rearm has chunks sent again after a pause. A timer that runs is left to run: resend then waits for the rest.
func (s *Stream) rearm(pause time.Duration) {
	s.pause, s.since = pause, time.Now()
	switch {
	case s.timer == nil:
		s.timer = time.AfterFunc(pause, s.resend)
	case !s.armed:
		s.timer.Reset(pause)
	}
	s.armed = true
}

// resend sends the chunks again that the other end may not have. If it has all of them, resend asks whether they were
// taken: the acknowledgement may be lost.
func (s *Stream) resend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if len(s.unacked) == 0 {
		return
	}
	if rest := s.pause - time.Since(s.since); rest > 0 {
		s.timer.Reset(rest)
		s.armed = true
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
	if !s.o.Lazy {
		s.publish(s.encode(Frame{kind: frameAck}))
	}
	if !f.last {
		return nil
	}
	message := s.partial
	s.partial = nil
	return message
}

// Receive handles a frame of the other end. It does not wait, unless Handle does.
func (s *Stream) Receive(f Frame) {
	s.accept(f)
	for s.o.Handle != nil {
		s.mu.Lock()
		message := s.next()
		s.mu.Unlock()
		if message == nil {
			return
		}
		s.o.Handle(message)
	}
}

// accept is Receive up to the messages.
func (s *Stream) accept(f Frame) {
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
