package halo

import (
	"context"
	"sync"
	"time"

	"jacobi/solver"
)

// TransportMemory is the name of the transport within one process.
const TransportMemory = "memory"

// NewMemory returns the two ends of a link within one process: of a rank that is its own neighbour, or of the
// ranks of a test. Send copies the rows, and Recv copies them again. timeout bounds both.
func NewMemory(a, b End, timeout time.Duration) (Link, Link, error) {
	if err := a.check(); err != nil {
		return nil, nil, err
	}
	if err := sameLink(a, b); err != nil {
		return nil, nil, a.wrap("open", 0, TransportMemory, err)
	}
	down, up := newPipe(a.SendBytes()), newPipe(a.RecvBytes())
	return &memoryLink{end: a, timeout: timeout, out: down, in: up, closed: make(chan struct{})},
		&memoryLink{end: b, timeout: timeout, out: up, in: down, closed: make(chan struct{})}, nil
}

// sameLink says whether a and b are the two ends of one link.
func sameLink(a, b End) error {
	f := b.frame(kindRows, 0)
	if err := a.addressed(&f); err != nil {
		return err
	}
	if err := a.agrees(&f); err != nil {
		return err
	}
	g := a.frame(kindRows, 0)
	return b.agrees(&g)
}

// letter is the rows of one exchange on their way.
type letter struct {
	exchange solver.ExchangeNumber
	rows     []byte
}

// pipe carries rows one way: two buffers, in one channel or the other.
type pipe struct{ full, free chan letter }

func newPipe(size int) pipe {
	p := pipe{make(chan letter, 2), make(chan letter, 2)}
	for range 2 {
		p.free <- letter{rows: make([]byte, size)}
	}
	return p
}

type memoryLink struct {
	end     End
	timeout time.Duration
	out, in pipe
	closed  chan struct{}
	once    sync.Once
}

func (l *memoryLink) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("send", exchange, TransportMemory, len(rows), l.end.SendBytes()); err != nil {
		return err
	}
	m, err := l.take(ctx, l.out.free, true, exchange)
	if err != nil {
		return err
	}
	copy(m.rows, rows)
	m.exchange = exchange
	l.out.full <- m // has room for both buffers
	return nil
}

func (l *memoryLink) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("receive", exchange, TransportMemory, len(rows), l.end.RecvBytes()); err != nil {
		return err
	}
	m, err := l.take(ctx, l.in.full, false, exchange)
	if err != nil {
		return err
	}
	copy(rows, m.rows)
	err = mismatch("exchange", m.exchange, exchange)
	l.in.free <- m
	if err != nil {
		return l.end.wrap("receive", exchange, TransportMemory, err)
	}
	return nil
}

// take receives from c, and ends with ctx, the link or the timeout.
func (l *memoryLink) take(ctx context.Context, c chan letter, sending bool, exchange solver.ExchangeNumber) (letter,
	error) {
	op := "receive"
	if sending {
		op = "send"
	}
	select {
	case <-l.closed:
		return letter{}, l.end.wrap(op, exchange, TransportMemory, ErrClosed)
	default:
	}
	select {
	case m := <-c:
		return m, nil
	default:
	}
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case m := <-c:
		return m, nil
	case <-l.closed:
		return letter{}, l.end.wrap(op, exchange, TransportMemory, ErrClosed)
	case <-ctx.Done():
		return letter{}, l.end.wrap(op, exchange, TransportMemory, context.Cause(ctx))
	case <-timer.C:
		return letter{}, l.end.timeout(sending, exchange, TransportMemory, l.timeout, "")
	}
}

func (l *memoryLink) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}
