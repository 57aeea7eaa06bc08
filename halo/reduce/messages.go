package reduce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
	"jacobi/solver"
)

// askAgain sends the sum of pass again, with those of later passes that may have been lost in the same message. While
// ranks are missing from the pass, a hub sends their numbers.
func (s *star) askAgain(pass uint64) error {
	if s.parent < 0 { // everyone else asks the root
		return nil
	}
	frames := s.unanswered(pass, pass+uint64(s.window.batch()))
	switch {
	case frames != nil:
		return s.publish(s.upwards(), frames)
	case s.hub != nil:
		return s.publish(s.upwards(), s.pendingFrame(pass, s.hub.missing(pass)).appendTo(nil))
	default:
		return nil // the leader names its node's ranks
	}
}

// unanswered returns the frames for the parent of passes [from, to) without a total, up to the first that is missing.
func (s *star) unanswered(from, to uint64) (frames []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pass := from; pass < to; pass++ {
		slot := s.slot(pass)
		if !slot.open || slot.pass != pass || slot.mine == nil {
			break
		}
		if !slot.have {
			frames = append(frames, slot.mine...)
		}
	}
	return frames
}

// sendMissing tells the parent which ranks of the node have not contributed to pass.
func (s *star) sendMissing(pass uint64, gone []int) error {
	f := s.pendingFrame(pass, gone)
	if s.hub != nil {
		return s.enter(f)
	}
	return s.publish(s.upwards(), f.appendTo(nil))
}

func (s *star) pendingFrame(pass uint64, gone []int) frame {
	return frame{kind: pending, run: s.run, pass: pass, rank: s.self, waiting: gone}
}

// answer returns the frame for a leader below that asks again: the total, or the ranks that are missing.
func (s *star) answer(pass uint64) frame {
	s.mu.Lock()
	slot := s.slot(pass)
	known, sum := slot.open && slot.pass == pass && slot.have, slot.total
	s.mu.Unlock()
	if known {
		return frame{kind: total, run: s.run, pass: pass, rank: s.self, c: sum}
	}
	return s.pendingFrame(pass, s.missing(pass))
}

// missing returns the ranks that have not contributed to pass, as far as is known here.
func (s *star) missing(pass uint64) []int {
	if s.hub != nil {
		if gone := s.hub.missing(pass); len(gone) > 0 || s.parent < 0 {
			return gone
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.slot(pass).waiting)
}

// receive handles a message from the server. It never blocks.
func (s *star) receive(m pubsub.Message) {
	for rest := m.Data; ; {
		f, n, err := decodeFrame(rest)
		if err == nil {
			err = s.check(f)
		}
		if err != nil {
			s.refuse(m.Subject, err)
		} else if err := s.take(f); err != nil {
			s.fail(err)
		}
		if rest = rest[n:]; len(rest) == 0 {
			return
		}
	}
}

// take handles a checked frame.
func (s *star) take(f frame) error {
	if !s.fromAbove(f) {
		return s.enter(f)
	}
	if f.kind == total {
		s.deliver(f.pass, f.c)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot := s.slot(f.pass); slot.open && slot.pass == f.pass {
		slot.waiting = f.waiting
	}
	return nil
}

// fromAbove reports whether f is a total, which the root sends to all, or the answer of the parent.
func (s *star) fromAbove(f frame) bool {
	return s.parent >= 0 && (f.kind == total && f.rank == 0 || f.kind != contribution && f.rank == s.parent)
}

func (s *star) check(f frame) error {
	switch {
	case f.run != s.run:
		return fmt.Errorf("a frame of another run (%016x, this one is %016x)", f.run, s.run)
	case len(f.c.Sums) > s.maxSums:
		return fmt.Errorf("%d sums from rank %d, at most %d were announced", len(f.c.Sums), f.rank, s.maxSums)
	case s.fromAbove(f):
		return nil
	case s.hub != nil:
		return s.hub.check(f)
	default:
		return fmt.Errorf("a frame of kind %d from rank %d, answers come from rank %d", f.kind, f.rank, s.parent)
	}
}

// refuse counts a refused frame and logs the first one.
func (s *star) refuse(subject string, err error) {
	s.mu.Lock()
	s.refused++
	first := s.refused == 1
	s.mu.Unlock()
	if first {
		s.log.Warn("refused a frame of the norm's reduction; further ones are not logged",
			zap.String("subject", subject), zap.Error(err))
	}
}

// kind says what a frame is.
type kind uint8

const (
	contribution kind = 1 // from a leader to its parent
	total        kind = 2 // from the root to all leaders, or from a parent to one
	pending      kind = 3 // names the ranks that a pass waits for; between a leader and its parent
)

// frame is a part of a message between the leaders of nodes; a message is one frame or more. It is encoded,
// little-endian, as magic u32, kind u8, flags u8, count u16, run u64, pass u64, rank u32, then count sums
// (solver.SumBytes each) or, in a pending frame, count ranks (u32 each), then u32, the CRC-32C of its bytes before
// that.
type frame struct {
	kind    kind
	run     uint64 // hash of the run id
	pass    uint64
	rank    int // of the sender
	c       solver.Contribution
	waiting []int
}

const (
	frameMagic = 0x5344524a // "JRDS"
	frameHead  = 28
	maxSums    = 4096
	maxWaiting = 1024 // ranks named in a pending frame
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// hashRun returns the number that stands for a run in its frames.
func hashRun(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// appendTo appends the encoded frame to b.
func (f frame) appendTo(b []byte) []byte {
	waiting, start := f.waiting[:min(len(f.waiting), maxWaiting)], len(b)
	b = slices.Grow(b, frameHead+len(f.c.Sums)*solver.SumBytes+4*len(waiting)+4)
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	b = append(b, byte(f.kind), byte(f.c.Flags))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.c.Sums)+len(waiting)))
	b = binary.LittleEndian.AppendUint64(b, f.run)
	b = binary.LittleEndian.AppendUint64(b, f.pass)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.rank))
	for _, s := range f.c.Sums {
		b = s.AppendBinary(b)
	}
	for _, r := range waiting {
		b = binary.LittleEndian.AppendUint32(b, uint32(r))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// frameBytes returns the length of the frame at the beginning of b, or 0 if none begins there.
func frameBytes(b []byte) int {
	if len(b) < frameHead+4 || binary.LittleEndian.Uint32(b) != frameMagic {
		return 0
	}
	each := solver.SumBytes
	if kind(b[4]) == pending {
		each = 4
	}
	return frameHead + int(binary.LittleEndian.Uint16(b[6:]))*each + 4
}

// decodeFrame reads the frame at the beginning of b and returns its length. Where the length is not to be trusted, it
// returns that of b with the error.
func decodeFrame(b []byte) (frame, int, error) {
	n := frameBytes(b)
	if n == 0 || n > len(b) {
		return frame{}, len(b), errors.New("not a frame of a reduction")
	}
	body, sum := b[:n-4], binary.LittleEndian.Uint32(b[n-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return frame{}, len(b), fmt.Errorf("checksum %08x, the frame says %08x", got, sum)
	}
	f, err := decodeBody(body)
	return f, n, err
}

// decodeBody reads a frame without its checksum.
func decodeBody(b []byte) (frame, error) {
	f := frame{
		kind: kind(b[4]),
		run:  binary.LittleEndian.Uint64(b[8:]),
		pass: binary.LittleEndian.Uint64(b[16:]),
		rank: int(binary.LittleEndian.Uint32(b[24:])),
	}
	count, rest := int(binary.LittleEndian.Uint16(b[6:])), b[frameHead:]
	switch {
	case !solver.Flags(b[5]).Valid():
		return frame{}, fmt.Errorf("flags %#02x", b[5])
	case (f.kind == contribution || f.kind == total) && count <= maxSums && len(rest) == count*solver.SumBytes:
		f.c.Flags = solver.Flags(b[5])
		f.c.Sums = make([]solver.Sum, count)
		for i := range f.c.Sums {
			s, err := solver.SumFromBinary(rest[i*solver.SumBytes:])
			if err != nil {
				return frame{}, err
			}
			f.c.Sums[i] = s
		}
	case f.kind == pending && b[5] == 0 && count <= maxWaiting && len(rest) == 4*count:
		f.waiting = make([]int, count)
		for i := range f.waiting {
			f.waiting[i] = int(binary.LittleEndian.Uint32(rest[4*i:]))
		}
	default:
		return frame{}, fmt.Errorf("kind %d with a count of %d in %d bytes", f.kind, count, len(rest))
	}
	return f, nil
}
