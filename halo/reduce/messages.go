package reduce

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
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
