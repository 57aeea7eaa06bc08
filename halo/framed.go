package halo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
	"jacobi/solver"
)

// FramedLink is a Link that sends rows in frames over carriers, which may lose them. Each end keeps the rows of the
// last two exchanges that it sent. Two are enough: an end that sends exchange n+2 has received exchange n+1, and its
// neighbour sent that only after it had received exchange n. A receiver that waits for too long asks over NATS, and the
// sender's subscription answers, even while the sender computes. Duplicates and reorderings change nothing.
//
// Nothing confirms the last exchange: an end that has received its neighbour's rows does not know whether the neighbour
// has received its own. So the owner of a link keeps it open until all ranks have received their last exchange (a run
// ends with a barrier).
type FramedLink struct {
	end      End
	opts     NATSOptions
	name     string // of the transport
	sockets  *sockets
	nats     *natsCarrier
	carriers []carrier // the best one first, NATS last
	choice   choice
	out      outbox
	in       inbox

	hurry     chan struct{} // holds at most one request to Recv to ask at once
	closed    chan struct{}
	broken    atomic.Pointer[error] // why nothing can be sent any more
	closeOnce sync.Once
	closeErr  error
	logOnce   sync.Once

	asked, resent, refused atomic.Uint64
	pending                atomic.Uint64 // answers of kindPending from the neighbour
}

// openLink opens one end of a link over NATS and, if s is not nil, sockets.
func openLink(ctx context.Context, end End, o NATSOptions, s *sockets) (*FramedLink, error) {
	o = o.complete(end)
	l := &FramedLink{end: end, opts: o, name: TransportNATS, hurry: make(chan struct{}, 1),
		closed: make(chan struct{}), choice: choice{mode: o.Compress}}
	l.nats = &natsCarrier{writers: writers{link: l, fail: l.fail, over: l.closed}}
	l.nats.write = l.nats.publishPart
	l.carriers = []carrier{l.nats}
	streams := o.lanes(end)
	if s != nil {
		l.name, l.sockets, l.carriers, streams = TransportDirect, s, []carrier{s, l.nats}, s.streams
		s.link = l
	}
	if err := l.open(ctx, streams); err != nil {
		return nil, errors.Join(end.wrap("open", 0, l.name, err), l.Close())
	}
	return l, nil
}

func (l *FramedLink) open(ctx context.Context, streams int) error {
	if err := l.nats.connect(ctx); err != nil {
		return err
	}
	if err := l.out.init(&l.end, l.nats.maxFrame(), streams); err != nil {
		return err
	}
	l.in.init(l.end.RecvBytes())
	return l.nats.listen(ctx)
}

// Room implements solver.RowLender.
func (l *FramedLink) Room(ctx context.Context, exchange solver.ExchangeNumber, n int) ([]byte, error) {
	if err := l.end.checkLen("send", exchange, l.name, n, l.end.SendBytes()); err != nil {
		return nil, err
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if err := l.vacate(ctx, exchange); err != nil {
		return nil, l.wrap("send", exchange, err)
	}
	return l.out.room(exchange, n), nil
}

// Send keeps the rows, for the carriers and for a request, and hands them to the best carrier. It does not wait for the
// neighbour.
func (l *FramedLink) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("send", exchange, l.name, len(rows), l.end.SendBytes()); err != nil {
		return err
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if err := l.vacate(ctx, exchange); err != nil {
		return l.wrap("send", exchange, err)
	}
	l.in.vacate() // the neighbour sends into them once it has these rows
	l.out.keep(exchange, rows, l.choice.post(len(rows) == l.end.SendBytes(), time.Now()))
	for _, c := range l.carriers {
		if c.send(exchange) {
			break
		}
	}
	return nil
}

// vacate waits until no carrier reads the memory of the rows of exchange any more.
func (l *FramedLink) vacate(ctx context.Context, exchange solver.ExchangeNumber) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	for _, c := range l.carriers {
		if err := c.vacate(ctx, exchange); err != nil {
			return err
		}
	}
	return nil
}

// usable returns why the link cannot be used.
func (l *FramedLink) usable(ctx context.Context) error {
	select {
	case <-l.closed:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	if err := l.broken.Load(); err != nil {
		return *err
	}
	if l.nats.status() == pubsub.Closed {
		return pubsub.ErrClosed
	}
	return nil
}

// wrap adds the operation to err. Close may close the connection while a call uses it: the call then reports ErrClosed.
func (l *FramedLink) wrap(op string, exchange solver.ExchangeNumber, err error) error {
	if errors.Is(err, pubsub.ErrClosed) && l.isClosed() {
		err = ErrClosed
	}
	return l.end.wrap(op, exchange, l.name, err)
}

func (l *FramedLink) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// fail makes later calls fail with err, and a Recv that waits.
func (l *FramedLink) fail(err error) {
	if l.isClosed() {
		return // the connections are closed, too
	}
	l.broken.CompareAndSwap(nil, &err)
	l.in.fail(err)
}

// refuse counts a frame that does not belong to this link, and logs the first one.
func (l *FramedLink) refuse(err error) {
	l.refused.Add(1)
	l.in.mu.Lock()
	l.in.refusal = err
	l.in.mu.Unlock()
	l.logOnce.Do(func() {
		l.opts.Log.Warn("refused a frame; further ones are only counted", zap.Stringer("side", l.end.Side),
			zap.Int("neighbour", l.end.Neighbour), zap.Error(err))
	})
}

// Close ends calls in progress, the subscriptions, and the link's own connections if it has any.
func (l *FramedLink) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		for i := range l.carriers { // NATS first, so that no request is answered by a part of a link
			l.closeErr = errors.Join(l.closeErr, l.carriers[len(l.carriers)-1-i].close())
		}
	})
	return l.closeErr
}

// NATSStats counts the events of a link over NATS, for reports.
type NATSStats struct {
	Asked      uint64 `json:"asked"`      // requests for missing rows
	Resent     uint64 `json:"resent"`     // frames sent again on request
	Duplicates uint64 `json:"duplicates"` // frames received again
	Refused    uint64 `json:"refused"`    // frames received that do not belong to the link, or were damaged
	Lost       uint64 `json:"lost"`       // frames that the client did not accept, as during a reconnection
	Dropped    uint64 `json:"dropped"`    // frames that the client dropped because this rank handled them too slowly
	Plain      uint64 `json:"plain"`      // bytes of the rows that were packed; see halo.compress
	Packed     uint64 `json:"packed"`     // bytes that were sent for them
	// MostBytes bounds the memory of frames: two exchanges kept for the neighbour, two exchanges received, and the
	// client's queues.
	MostBytes int64 `json:"most_bytes"`
}

// Stats returns the counts so far.
func (l *FramedLink) Stats() NATSStats {
	s := NATSStats{Asked: l.asked.Load(), Resent: l.resent.Load(), Duplicates: l.in.duplicates.Load(),
		Refused: l.refused.Load(), Lost: l.nats.lost.Load(),
		Plain: l.choice.plain.Load(), Packed: l.choice.packed.Load(),
		MostBytes: l.out.bytes() + 2*int64(l.end.RecvBytes()) + int64(len(l.nats.subs)*l.opts.Pending)}
	for _, sub := range l.nats.subs {
		if n, err := sub.Dropped(); err == nil { // it fails once closed
			s.Dropped += uint64(n)
		}
	}
	return s
}

// DirectStats returns the counts of a link over TCP; nil of others.
func (l *FramedLink) DirectStats() *DirectStats {
	if l.sockets == nil {
		return nil
	}
	return new(l.sockets.stats())
}
