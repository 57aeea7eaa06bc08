package halo

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"jacobi/internal/pubsub"
	"jacobi/solver"
)

// Large exchanges are divided among several connections, so that several cores copy, seal, and serve them.
const (
	maxLanes = 4
	laneRows = 32 << 10 // bytes of rows for each lane
)

// lanes returns the number of lanes of a link, the same at both ends.
func (o *NATSOptions) lanes(end End) int {
	if o.Lanes > 0 {
		return o.Lanes
	}
	if o.Dial == nil {
		return 1
	}
	return min(max(1, max(end.SendBytes(), end.RecvBytes())/laneRows), maxLanes)
}

// lane carries the parts of an exchange whose number, modulo that of lanes, is its own. Its goroutine publishes them,
// so that Send waits neither for the seal nor for the connection. Send itself publishes rows of at most inlineRows,
// because handing them over takes longer.
type lane struct {
	conn    Conn
	publish Publisher
	own     OwnConn // nil: the connection is another one's
	subject string  // of the frames sent
	queue   chan solver.ExchangeNumber
	packing // of the frame that is being published
}

// openLanes makes the connections. If one of the further ones is refused, its lane uses the first one.
func (l *NATSLink) openLanes(ctx context.Context, n int, theirs string) error {
	for i := range n {
		a := &lane{conn: l.opts.Conn, subject: theirs, queue: make(chan solver.ExchangeNumber, 2)}
		if i > 0 {
			a.subject = fmt.Sprintf("%s.%d", theirs, i)
		}
		if l.opts.Dial != nil {
			own, err := l.opts.Dial(ctx)
			switch {
			case err == nil:
				a.conn, a.own = own, own
			case i == 0:
				return err
			default:
				a.conn = l.lanes[0].conn
				l.opts.Log.Debug("a link has fewer connections than it could use", zap.Error(err))
			}
		}
		if a.publish = l.opts.Publisher; a.publish == nil {
			a.publish = a.conn
		}
		l.lanes = append(l.lanes, a)
		if a.conn == nil {
			return errors.New("no connection")
		}
	}
	return nil
}

// run publishes the parts of lane i until the link is closed.
func (l *NATSLink) run(i int) {
	a := l.lanes[i]
	for {
		var exchange solver.ExchangeNumber
		select {
		case exchange = <-a.queue:
		case <-l.closed:
			return
		}
		l.publishParts(i, exchange)
		if l.flying.done(exchange) {
			l.sent(exchange)
		}
	}
}

// publishParts publishes the parts of exchange that go through lane i.
func (l *NATSLink) publishParts(i int, exchange solver.ExchangeNumber) {
	a, slot := l.lanes[i], &l.out.slots[exchange%2]
	for part := i; part < l.out.parts; part += len(l.lanes) {
		if err := l.publish(a, a.subject, l.frame(a, slot, part)); err != nil {
			l.fail(fmt.Errorf("send exchange %d: %w", exchange, err))
			return
		}
	}
}

// inline reports whether Send publishes itself.
func (l *NATSLink) inline() bool { return len(l.lanes) == 1 && l.end.SendBytes() <= inlineRows }

// post publishes the rows of exchange, or hands them to the lanes.
func (l *NATSLink) post(exchange solver.ExchangeNumber) {
	if l.inline() {
		l.publishParts(0, exchange)
		l.sent(exchange)
		return
	}
	l.flying.begin(exchange, len(l.lanes))
	for _, a := range l.lanes {
		a.queue <- exchange // has room: the rows of exchange-2 are out
	}
}

// Room implements solver.RowLender.
func (l *NATSLink) Room(ctx context.Context, exchange solver.ExchangeNumber) ([]byte, error) {
	err := l.usable(ctx)
	if err == nil {
		l.out.mu.Lock()
		defer l.out.mu.Unlock()
		err = l.vacate(ctx, exchange)
	}
	if err != nil {
		return nil, l.wrap("send", exchange, err)
	}
	return l.out.room(exchange), nil
}

// vacate waits until the lanes no longer read the rows of exchange-2, whose memory exchange takes.
func (l *NATSLink) vacate(ctx context.Context, exchange solver.ExchangeNumber) error {
	if l.fast != nil {
		l.fast.vacate(exchange)
	}
	if l.flying.wait(exchange, l.opts.Timeout, ctx.Done()) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.end.timeout(true, exchange, l.name, l.opts.Timeout, "the connection to NATS does not take them")
}

// publish returns an error only if sending again would fail, too. A message that is lost while the client reconnects is
// counted, and the neighbour asks for it.
func (l *NATSLink) publish(a *lane, subject string, data []byte) error {
	err := a.publish.Publish(subject, data)
	if !errors.Is(err, pubsub.ErrLost) {
		return err
	}
	l.lost.Add(1)
	l.opts.Log.Debug("frame lost", zap.String("subject", subject), zap.Error(err))
	return nil
}

// flush returns when the server knows the subscriptions that were made through conn.
func (l *NATSLink) flush(ctx context.Context, conn Conn) error {
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timeout)
	defer cancel()
	if err := conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("flush the subscriptions: %w", err)
	}
	return nil
}
