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
	CopyOut   time.Duration // copying edges out of the field
	Send      time.Duration // in Room and Send
	Wait      time.Duration // in Recv
	CopyIn    time.Duration // copying rows of the neighbour into the field
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

// Meter measures a link.
type Meter struct {
	Link
	observe func(Transfer) // may be nil

	exchanges, sent, received   atomic.Int64
	copyOut, send, wait, copyIn atomic.Int64
}

var _ solver.ExchangeTimer = (*Meter)(nil)

// Rows returns the link with its meter. It is a solver.RowLender if the link is one.
func (m *Meter) Rows() solver.RowLink {
	if lender, ok := m.Link.(solver.RowLender); ok {
		return &lenderMeter{m, lender}
	}
	return m
}

// Observe sets a function that is called with each transfer, in the goroutine that makes it. It is called before the
// first transfer.
func (m *Meter) Observe(f func(Transfer)) { m.observe = f }

// Traffic returns what went through the link.
func (m *Meter) Traffic() Traffic {
	sent, received := uint64(m.sent.Load()), uint64(m.received.Load())
	return Traffic{Exchanges: uint64(m.exchanges.Load()), Bytes: sent + received, Sent: sent,
		CopyOut: time.Duration(m.copyOut.Load()), Send: time.Duration(m.send.Load()),
		Wait: time.Duration(m.wait.Load()), CopyIn: time.Duration(m.copyIn.Load())}
}

// CopiedEdge implements solver.ExchangeTimer.
func (m *Meter) CopiedEdge(d time.Duration) { m.copyOut.Add(int64(d)) }

// CopiedHalo implements solver.ExchangeTimer.
func (m *Meter) CopiedHalo(d time.Duration) { m.copyIn.Add(int64(d)) }

// Send implements Link.
func (m *Meter) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	begin := time.Now()
	err := m.Link.Send(ctx, exchange, rows)
	m.handed(exchange, CallSend, begin)
	m.sent.Add(int64(len(rows)))
	return err
}

// handed counts the time since begin, in which the caller handed rows over.
func (m *Meter) handed(exchange solver.ExchangeNumber, call TransferCall, begin time.Time) {
	took := time.Since(begin)
	m.send.Add(int64(took))
	if m.observe != nil {
		m.observe(Transfer{exchange, call, begin, took})
	}
}

// Recv implements Link.
func (m *Meter) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	begin := time.Now()
	err := m.Link.Recv(ctx, exchange, rows)
	m.came(exchange, begin, len(rows))
	return err
}

// came counts n bytes of rows for which the caller has waited since begin.
func (m *Meter) came(exchange solver.ExchangeNumber, begin time.Time, n int) {
	took := time.Since(begin)
	m.wait.Add(int64(took))
	m.received.Add(int64(n))
	m.exchanges.Add(1)
	if m.observe != nil {
		m.observe(Transfer{exchange, CallRecv, begin, took})
	}
}

// lenderMeter is the meter of a link with memory of its own.
type lenderMeter struct {
	*Meter
	lender solver.RowLender
}

// Room implements solver.RowLender.
func (m *lenderMeter) Room(ctx context.Context, exchange solver.ExchangeNumber, n int) ([]byte, error) {
	begin := time.Now()
	rows, err := m.lender.Room(ctx, exchange, n)
	m.handed(exchange, CallRoom, begin)
	return rows, err
}

// Take implements solver.RowLender.
func (m *lenderMeter) Take(ctx context.Context, exchange solver.ExchangeNumber, n int) ([]byte, error) {
	begin := time.Now()
	rows, err := m.lender.Take(ctx, exchange, n)
	m.came(exchange, begin, len(rows))
	return rows, err
}
