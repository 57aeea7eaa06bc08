package halo

import (
	"sync"
	"time"

	"jacobi/solver"
)

// Split adds up, over exchanges, the parts of the way of rows from one rank to the other, as one end sees them. All
// times are differences on the clock of this end. The clocks of the two ends may differ by any amount:
//
//	time on the wire, the mean of both directions = (mean Turn of this end + mean Turn of the other end) / 2
//	how much later the neighbour's Frame ends = (mean Turn of this end - mean Turn of the other end) / 2
//
// The second line takes the wire to be equally fast both ways.
type Split struct {
	Exchanges uint64        // with all times known
	Frame     time.Duration // from Send until the connections have taken the last part: packing, sealing, publishing
	Unframe   time.Duration // from the arrival of the neighbour's last part until its rows are complete
	Turn      time.Duration // from the end of Frame until the neighbour's last part has arrived; may be negative
}

// stamps collects the times of the exchanges under way.
type stamps struct {
	mu    sync.Mutex
	slots [4]stamp // two exchanges may be under way, and goroutines may be late with the times of two more
	sum   Split
}

// stamp has the times of an exchange. Those that are not known yet are zero.
type stamp struct {
	exchange                     solver.ExchangeNumber
	posted, sent, came, complete time.Time
}

// at returns the slot of exchange, or nil if a later exchange has taken it.
func (s *stamps) at(exchange solver.ExchangeNumber) *stamp {
	t := &s.slots[exchange%solver.ExchangeNumber(len(s.slots))]
	if t.exchange > exchange {
		return nil
	}
	if t.exchange < exchange {
		*t = stamp{exchange: exchange}
	}
	return t
}

// posted notes when the rows of exchange were handed over.
func (s *stamps) posted(exchange solver.ExchangeNumber, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.at(exchange); t != nil {
		t.posted = at
	}
}

// sent notes when the connections had taken all of the rows.
func (s *stamps) sent(exchange solver.ExchangeNumber, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.at(exchange); t != nil {
		t.sent = at
		s.add(t)
	}
}

// arrived notes when the last part of the neighbour's rows had come, and when these were complete.
func (s *stamps) arrived(exchange solver.ExchangeNumber, came, complete time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.at(exchange); t != nil {
		t.came, t.complete = came, complete
		s.add(t)
	}
}

// add counts an exchange once all its times are known.
func (s *stamps) add(t *stamp) {
	if t.posted.IsZero() || t.sent.IsZero() || t.came.IsZero() {
		return
	}
	s.sum.Exchanges++
	s.sum.Frame += t.sent.Sub(t.posted)
	s.sum.Unframe += t.complete.Sub(t.came)
	s.sum.Turn += t.came.Sub(t.sent)
}

// split returns the sums so far.
func (s *stamps) split() Split {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}
