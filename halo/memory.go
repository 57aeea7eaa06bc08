package halo

import (
	"context"
	"errors"
	"sync"
	"time"

	"jacobi/solver"
)

// TransportMemory is the name of the transport within one process.
const TransportMemory = "memory"

// NewMemory returns the two ends of a link within one process: for a rank that is its own neighbour, and for tests.
// Send and Recv each copy the rows, and each fails after timeout.
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

// sameLink returns an error unless a and b are the two ends of one link.
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

// buffer holds the rows of one exchange.
type buffer struct {
	exchange solver.ExchangeNumber
	rows     []byte
}

// pipe carries rows in one direction. Each of its two buffers is in one of the channels, or in the hands of Send or
// Recv.
type pipe struct{ full, free chan buffer }

func newPipe(size int) pipe {
	p := pipe{make(chan buffer, 2), make(chan buffer, 2)}
	for range 2 {
		p.free <- buffer{rows: make([]byte, size)}
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
	b, err := l.receive(ctx, l.out.free, true, exchange)
	if err != nil {
		return err
	}
	b.rows = append(b.rows[:0], rows...)
	b.exchange = exchange
	l.out.full <- b // has room for both buffers
	return nil
}

func (l *memoryLink) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("receive", exchange, TransportMemory, len(rows), l.end.RecvBytes()); err != nil {
		return err
	}
	b, err := l.receive(ctx, l.in.full, false, exchange)
	if err != nil {
		return err
	}
	err = errors.Join(mismatch("exchange", b.exchange, exchange), mismatch("bytes", len(b.rows), len(rows)))
	copy(rows, b.rows)
	l.in.free <- b
	if err != nil {
		return l.end.wrap("receive", exchange, TransportMemory, err)
	}
	return nil
}

// receive receives a buffer from c. It fails when ctx ends, the link is closed, or the timeout is over.
func (l *memoryLink) receive(ctx context.Context, c chan buffer, sending bool,
	exchange solver.ExchangeNumber) (buffer, error) {
	op := "receive"
	if sending {
		op = "send"
	}
	select {
	case <-l.closed:
		return buffer{}, l.end.wrap(op, exchange, TransportMemory, ErrClosed)
	default:
	}
	select {
	case b := <-c:
		return b, nil
	default:
	}
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case b := <-c:
		return b, nil
	case <-l.closed:
		return buffer{}, l.end.wrap(op, exchange, TransportMemory, ErrClosed)
	case <-ctx.Done():
		return buffer{}, l.end.wrap(op, exchange, TransportMemory, context.Cause(ctx))
	case <-timer.C:
		return buffer{}, l.end.timeout(sending, exchange, TransportMemory, l.timeout, "")
	}
}

func (l *memoryLink) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}
