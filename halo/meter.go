package halo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/solver"
)

// Traffic is what went through a link so far, as its user saw it.
type Traffic struct {
	Exchanges uint64        // received
	Bytes     uint64        // of rows, sent and received
	Sent      uint64        // of Bytes
	CopyOut   time.Duration // copying edges out of the field
	Send      time.Duration // in Room and Send
	Wait      time.Duration // in Recv
	CopyIn    time.Duration // copying rows of the neighbour into the field
	// Travel adds up, over the exchanges, the time from the call of Send until the neighbour's rows of the same
	// exchange were there. It is 0 if the link does not know.
	Travel time.Duration
	Hidden time.Duration // of Travel, while the rank swept; 0 if the link does not know
	Split  Split         // zero if the link does not know
}

// Meter measures a link. It is a solver.RowLender if the link is one.
type Meter interface {
	Link
	solver.ExchangeTimer
	Traffic() Traffic
	// Observe sets a function that is called with each transfer, in the goroutine that makes it. It is called before
	// the first transfer.
	Observe(f func(Transfer))
}

// Transfer is a call of a link, as Traffic counts it.
type Transfer struct {
	Exchange solver.ExchangeNumber
	Call     TransferCall
	Start    time.Time
	Took     time.Duration
}

// TransferCall is a method of a link.
type TransferCall uint8

// The calls. Traffic.Send has the first two, Traffic.Wait the third.
const (
	CallRoom TransferCall = iota // Room of a solver.RowLender
	CallSend
	CallRecv // or Take of a solver.RowLender
)

// NewMeter returns l with a meter.
func NewMeter(l Link) Meter { return newMeter(l, time.Now) }

// newMeter is NewMeter with a clock.
func newMeter(l Link, now func() time.Time) Meter {
	m := &meter{Link: l, now: now}
	if framed, ok := l.(*FramedLink); ok {
		return &lenderMeter{meter: m, link: framed}
	}
	return m
}

type meter struct {
	Link
	now     func() time.Time
	posted  atomic.Pointer[time.Time] // the last call of Send
	observe func(Transfer)            // may be nil

	exchanges, sent, received           atomic.Int64
	copyOut, send, wait, copyIn, travel atomic.Int64
	hidden                              atomic.Int64

	sweptFrom, sweptTo time.Time // see solver.ExchangeTimer; of the goroutine that receives
}

// Observe implements Meter.
func (m *meter) Observe(f func(Transfer)) { m.observe = f }

// Traffic implements Meter.
func (m *meter) Traffic() Traffic {
	sent, received := uint64(m.sent.Load()), uint64(m.received.Load())
	return Traffic{Exchanges: uint64(m.exchanges.Load()), Bytes: sent + received, Sent: sent,
		CopyOut: time.Duration(m.copyOut.Load()), Send: time.Duration(m.send.Load()),
		Wait: time.Duration(m.wait.Load()), CopyIn: time.Duration(m.copyIn.Load()),
		Travel: time.Duration(m.travel.Load()), Hidden: time.Duration(m.hidden.Load())}
}

// CopiedEdge implements solver.ExchangeTimer.
func (m *meter) CopiedEdge(d time.Duration) { m.copyOut.Add(int64(d)) }

// CopiedHalo implements solver.ExchangeTimer.
func (m *meter) CopiedHalo(d time.Duration) { m.copyIn.Add(int64(d)) }

// Swept implements solver.ExchangeTimer.
func (m *meter) Swept(from, to time.Time) { m.sweptFrom, m.sweptTo = from, to }

// Send implements Link.
func (m *meter) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	begin := m.now()
	m.posted.Store(&begin)
	err := m.Link.Send(ctx, exchange, rows)
	m.handed(exchange, CallSend, begin)
	m.sent.Add(int64(len(rows)))
	return err
}

// handed counts the time since begin, in which the caller handed rows over.
func (m *meter) handed(exchange solver.ExchangeNumber, call TransferCall, begin time.Time) {
	took := m.now().Sub(begin)
	m.send.Add(int64(took))
	if m.observe != nil {
		m.observe(Transfer{exchange, call, begin, took})
	}
}

// Recv implements Link.
func (m *meter) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	begin := m.now()
	err := m.Link.Recv(ctx, exchange, rows)
	m.came(exchange, begin, len(rows))
	return err
}

// came counts n bytes of rows for which the caller has waited since begin.
func (m *meter) came(exchange solver.ExchangeNumber, begin time.Time, n int) {
	took := m.now().Sub(begin)
	m.wait.Add(int64(took))
	m.received.Add(int64(n))
	m.exchanges.Add(1)
	if m.observe != nil {
		m.observe(Transfer{exchange, CallRecv, begin, took})
	}
}

// lenderMeter is the meter of a link with memory of its own, which knows when rows have arrived.
type lenderMeter struct {
	*meter
	link *FramedLink
}

// Traffic implements Meter.
func (m *lenderMeter) Traffic() Traffic {
	t := m.meter.Traffic()
	t.Split = m.link.stamps.split()
	return t
}

// Recv implements Link.
func (m *lenderMeter) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	err := m.meter.Recv(ctx, exchange, rows)
	m.arrived(err)
	return err
}

// Room implements solver.RowLender.
func (m *lenderMeter) Room(ctx context.Context, exchange solver.ExchangeNumber, n int) ([]byte, error) {
	begin := m.now()
	rows, err := m.link.Room(ctx, exchange, n)
	m.handed(exchange, CallRoom, begin)
	return rows, err
}

// Take implements solver.RowLender.
func (m *lenderMeter) Take(ctx context.Context, exchange solver.ExchangeNumber, n int) ([]byte, error) {
	begin := m.now()
	rows, err := m.link.Take(ctx, exchange, n)
	m.came(exchange, begin, len(rows))
	m.arrived(err)
	return rows, err
}

// arrived adds the time of the rows that have been received to Travel.
func (m *lenderMeter) arrived(err error) {
	posted := m.posted.Load()
	if err != nil || posted == nil {
		return
	}
	// Rows that were there before this rank sent its own have not kept it waiting.
	_, arrival := m.link.in.arrival()
	m.travel.Add(int64(max(0, arrival.Sub(*posted))))
	if arrival.After(m.sweptTo) {
		arrival = m.sweptTo
	}
	m.hidden.Add(int64(max(0, arrival.Sub(m.sweptFrom))))
}

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
