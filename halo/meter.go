package halo

import (
	"context"
	"sync/atomic"
	"time"

	"jacobi/solver"
)

// Traffic is what went through a link so far, as its user saw it.
type Traffic struct {
	Exchanges uint64        // received
	Bytes     uint64        // of rows, sent and received
	Sent      uint64        // of Bytes
	Send      time.Duration // in Send
	Wait      time.Duration // in Recv
	// Travel adds up, over the exchanges, the time from the call of Send until the neighbour's rows of the same
	// exchange were there. It is 0 if the link does not know.
	Travel time.Duration
}

// Meter measures a link. It is a solver.RowLender if the link is one.
type Meter interface {
	Link
	Traffic() Traffic
}

// NewMeter returns l with a meter.
func NewMeter(l Link) Meter {
	m := &meter{Link: l}
	if lender, ok := l.(lender); ok {
		return &lenderMeter{meter: m, lender: lender}
	}
	return m
}

// lender is a link with memory of its own. It knows when rows have arrived.
type lender interface {
	Link
	solver.RowLender
	arrival() time.Time // of the rows that Take has returned
}

type meter struct {
	Link
	posted                                        atomic.Pointer[time.Time] // the last call of Send
	exchanges, sent, received, send, wait, travel atomic.Int64
}

// Traffic implements Meter.
func (m *meter) Traffic() Traffic {
	sent, received := uint64(m.sent.Load()), uint64(m.received.Load())
	return Traffic{Exchanges: uint64(m.exchanges.Load()), Bytes: sent + received, Sent: sent,
		Send: time.Duration(m.send.Load()), Wait: time.Duration(m.wait.Load()), Travel: time.Duration(m.travel.Load())}
}

// Send implements Link.
func (m *meter) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	begin := time.Now()
	m.posted.Store(&begin)
	err := m.Link.Send(ctx, exchange, rows)
	m.send.Add(int64(time.Since(begin)))
	m.sent.Add(int64(len(rows)))
	return err
}

// Recv implements Link.
func (m *meter) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	begin := time.Now()
	err := m.Link.Recv(ctx, exchange, rows)
	m.came(begin, len(rows))
	return err
}

// came counts n bytes of rows for which the caller has waited since begin.
func (m *meter) came(begin time.Time, n int) {
	m.wait.Add(int64(time.Since(begin)))
	m.received.Add(int64(n))
	m.exchanges.Add(1)
}

type lenderMeter struct {
	*meter
	lender lender
}

// Room implements solver.RowLender.
func (m *lenderMeter) Room(ctx context.Context, exchange solver.ExchangeNumber) ([]byte, error) {
	return m.lender.Room(ctx, exchange)
}

// Take implements solver.RowLender.
func (m *lenderMeter) Take(ctx context.Context, exchange solver.ExchangeNumber) ([]byte, error) {
	begin := time.Now()
	rows, err := m.lender.Take(ctx, exchange)
	m.came(begin, len(rows))
	if posted := m.posted.Load(); err == nil && posted != nil {
		// Rows that were there before this rank sent its own have not kept it waiting.
		m.travel.Add(int64(max(0, m.lender.arrival().Sub(*posted))))
	}
	return rows, err
}
