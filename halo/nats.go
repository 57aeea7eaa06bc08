package halo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/pubsub"
	"jacobi/solver"
)

// TransportNATS is the name of the transport between any two ranks.
const TransportNATS = "nats"

// The defaults of NATSOptions.
const (
	DefaultMaxFrame    = 512 << 10
	DefaultAskAfter    = 200 * time.Millisecond
	DefaultMaxAskAfter = 2 * time.Second
)

// pendingBytes is the smallest default of NATSOptions.Pending.
const pendingBytes = 64 << 20

// Publisher sends the messages of a link. Faults.Publisher returns one with faults.
type Publisher = pubsub.Publisher

// Conn is a connection to NATS; *wire.Conn is one.
type Conn = pubsub.Conn

// OwnConn is a connection that one link uses alone, and closes.
type OwnConn interface {
	Conn
	Close()
}

// NATSOptions tune a link over NATS; only Conn and Timeout have to be set.
type NATSOptions struct {
	Conn Conn
	// Dial, if not nil, makes a connection for this link alone, used in place of Conn. The rows of one side then do not
	// wait behind those of the other, nor rows behind other messages.
	Dial        func(context.Context) (OwnConn, error)
	Publisher   Publisher     // default: the connection
	Prefix      string        // of the subjects of the run; default jacobi.RUN
	Log         *zap.Logger   // default: none
	Timeout     time.Duration // bounds Recv
	MaxFrame    int           // bytes; default DefaultMaxFrame; never above the server's max_payload
	AskAfter    time.Duration // how long a receiver waits before it asks; default DefaultAskAfter
	MaxAskAfter time.Duration // the wait doubles up to this; default DefaultMaxAskAfter
	// bytes of frames that may queue for this rank before the client drops them; default: the larger of pendingBytes
	// and 8 exchanges
	Pending int
}

// NATSStats counts the events of a link over NATS.
type NATSStats struct {
	Asked      uint64 // requests for missing rows
	Resent     uint64 // frames sent again on request
	Duplicates uint64 // frames received again
	Refused    uint64 // frames received that do not belong to the link, or were damaged
	Lost       uint64 // frames that the client did not accept, for instance during a reconnection
	Dropped    uint64 // frames that the client dropped because this rank handled them too slowly
	// MostBytes bounds the memory of frames: two exchanges kept for the neighbour, two exchanges received, and the
	// client's queues.
	MostBytes int64
}

// NATSLink is a Link over core NATS, which delivers at most once and keeps the order only while the connection lives.
// Frames go to the subject PREFIX.halo.RECEIVER.SIDE, with the receiver's side. Each end keeps the frames of the last
// two exchanges that it sent. Two are enough: an end that sends exchange n+2 has received exchange n+1, and its
// neighbour sent that only after it had received exchange n. A receiver that waits for too long asks on
// PREFIX.halo.SENDER.SIDE.ask. The sender's subscription answers, even while the sender computes. Duplicates and
// reorderings change nothing.
//
// Nothing confirms the last exchange: an end that has received its neighbour's rows does not know whether the neighbour
// has received its own. So the owner of a link keeps it open until all ranks have received their last exchange (a run
// ends with a barrier).
type NATSLink struct {
	end     End
	opts    NATSOptions
	name    string   // of the transport, for messages
	fast    *sockets // sends frames in place of NATS while it can; nil: there is no other way
	subject string   // of the frames sent
	ask     string   // of the requests sent
	own     OwnConn  // nil: Conn is shared
	subs    []pubsub.Subscription
	out     outbox
	in      inbox

	hurry     chan struct{} // holds at most one request to Recv to ask at once
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
	logOnce   sync.Once

	asked, resent, refused, lost atomic.Uint64
	pending                      atomic.Uint64 // answers of kindPending from the neighbour
}

// subject returns the subject on which a rank of the run listens.
func (o *NATSOptions) subject(run RunID, what string, receiver int, side fmt.Stringer) string {
	prefix := o.Prefix
	if prefix == "" {
		prefix = "jacobi." + run.String()
	}
	return fmt.Sprintf("%s.%s.%d.%s", prefix, what, receiver, side)
}

// NewNATS opens one end of a link. When it returns, the server knows the subscriptions of this end, so the neighbour
// may send.
func NewNATS(ctx context.Context, end End, o NATSOptions) (*NATSLink, error) {
	if err := end.check(); err != nil {
		return nil, err
	}
	if o.Dial == nil {
		return openLink(ctx, end, o, nil)
	}
	own, err := o.Dial(ctx)
	if err != nil {
		return nil, end.wrap("open", 0, TransportNATS, err)
	}
	o.Conn = own
	l, err := openLink(ctx, end, o, nil)
	if err != nil {
		own.Close()
		return nil, err
	}
	l.own = own
	return l, nil
}

// openLink opens one end of a link, whose frames go through fast while that has a connection.
func openLink(ctx context.Context, end End, o NATSOptions, fast *sockets) (*NATSLink, error) {
	if o.Conn == nil {
		return nil, end.wrap("open", 0, TransportNATS, errors.New("no connection"))
	}
	if o.Publisher == nil {
		o.Publisher = o.Conn
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = DefaultMaxFrame
	}
	if o.AskAfter == 0 {
		o.AskAfter = DefaultAskAfter
	}
	if o.MaxAskAfter == 0 {
		o.MaxAskAfter = DefaultMaxAskAfter
	}
	o.MaxAskAfter = max(o.MaxAskAfter, o.AskAfter)
	if o.Pending == 0 {
		o.Pending = max(pendingBytes, 8*end.RecvBytes())
	}
	if limit := o.Conn.MaxPayload(); limit > 0 {
		o.MaxFrame = min(o.MaxFrame, int(min(limit, 1<<30)))
	}
	there := end.Facing()
	mine := o.subject(end.Run, "halo", end.Rank, end.Side)
	theirs := o.subject(end.Run, "halo", there.Rank, there.Side)
	l := &NATSLink{end: end, opts: o, name: TransportNATS, subject: theirs, ask: theirs + ".ask",
		hurry: make(chan struct{}, 1), closed: make(chan struct{})}
	streams := 1
	if fast != nil {
		l.fast, l.name, l.out.shared, streams = fast, TransportDirect, true, fast.streams
	}
	if err := l.out.init(&l.end, o.MaxFrame, streams); err != nil {
		return nil, end.wrap("open", 0, l.name, err)
	}
	l.in.init(end.RecvBytes())
	if err := l.subscribe(ctx, mine); err != nil {
		return nil, errors.Join(end.wrap("open", 0, l.name, err), l.Close())
	}
	return l, nil
}

func (l *NATSLink) subscribe(ctx context.Context, subject string) error {
	for s, handle := range map[string]func(pubsub.Message){subject: l.onRows, subject + ".ask": l.onAsk} {
		sub, err := l.opts.Conn.Subscribe(s, handle)
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", s, err)
		}
		l.subs = append(l.subs, sub)
		if err := sub.SetPendingLimits(-1, l.opts.Pending); err != nil {
			return fmt.Errorf("subscribe to %s: %w", s, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timeout)
	defer cancel()
	for {
		err := l.opts.Conn.FlushWithContext(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || l.opts.Conn.Status() == pubsub.Closed {
			return fmt.Errorf("flush the subscriptions: %w", err)
		}
		// The connection broke; the client reconnects.
		select {
		case <-ctx.Done():
		case <-time.After(pauseNeighbour):
		}
	}
}

// Send publishes the rows and keeps them for a request. It does not wait for the neighbour.
func (l *NATSLink) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("send", exchange, l.name, len(rows), l.end.SendBytes()); err != nil {
		return err
	}
	if err := l.usable(ctx); err != nil {
		return l.end.wrap("send", exchange, l.name, err)
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if l.fast != nil {
		l.fast.vacate(exchange)
	}
	s := l.out.keep(exchange, rows)
	if l.fast != nil && l.fast.send(exchange) {
		return nil
	}
	if err := l.out.publish(s, nil, func(frame []byte) error { return l.publish(l.subject, frame) }); err != nil {
		return l.end.wrap("send", exchange, l.name, err)
	}
	return nil
}

func (l *NATSLink) usable(ctx context.Context) error {
	select {
	case <-l.closed:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}

// publish returns an error only if sending again would fail, too. A message that is lost while the client reconnects is
// counted, and the neighbour asks for it.
func (l *NATSLink) publish(subject string, data []byte) error {
	err := l.opts.Publisher.Publish(subject, data)
	if !errors.Is(err, pubsub.ErrLost) {
		return err
	}
	l.lost.Add(1)
	l.opts.Log.Debug("frame lost", zap.String("subject", subject), zap.Error(err))
	return nil
}

// onAsk answers a neighbour that asks for an exchange. It runs on the subscription's goroutine.
func (l *NATSLink) onAsk(m pubsub.Message) {
	f, has, err := parseFrame(m.Data)
	if err == nil {
		err = l.end.addressed(&f)
	}
	if err == nil && f.kind != kindAsk {
		err = mismatch("frame kind", f.kind, kindAsk)
	}
	if err == nil {
		err = l.end.agrees(&f)
	}
	if err != nil {
		l.refuse(err)
		return
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	slot, state := l.out.find(f.exchange)
	switch state {
	case outPending:
		answer, msg := l.end.frame(kindPending, f.exchange), make([]byte, headerSize)
		answer.put(msg, nil)
		err = l.publish(l.subject, msg)
	case outKept:
		err = l.out.publish(slot, has, func(frame []byte) error {
			l.resent.Add(1)
			return l.publish(l.subject, frame)
		})
	case outGone: // a late request: the neighbour has received the exchange
	}
	if err != nil {
		l.opts.Log.Warn("cannot send rows again", zap.Error(l.end.wrap("resend", f.exchange, l.name, err)))
	}
}

// refuse counts a frame that does not belong to this link, and logs the first one.
func (l *NATSLink) refuse(err error) {
	l.refused.Add(1)
	l.in.mu.Lock()
	l.in.refusal = err
	l.in.mu.Unlock()
	l.logOnce.Do(func() {
		l.opts.Log.Warn("refused a frame; more are only counted", zap.Stringer("side", l.end.Side),
			zap.Int("neighbour", l.end.Neighbour), zap.Error(err))
	})
}

// Stats returns the counts so far.
func (l *NATSLink) Stats() NATSStats {
	s := NATSStats{Asked: l.asked.Load(), Resent: l.resent.Load(), Duplicates: l.in.duplicates.Load(),
		Refused: l.refused.Load(), Lost: l.lost.Load(), MostBytes: l.out.bytes() + 2*int64(l.end.RecvBytes())}
	for _, sub := range l.subs {
		s.MostBytes += int64(l.opts.Pending)
		if n, err := sub.Dropped(); err == nil { // it fails once closed
			s.Dropped += uint64(n)
		}
	}
	return s
}

// Close ends calls in progress, the subscriptions, and the link's own connection if it has one.
func (l *NATSLink) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		for _, s := range l.subs {
			if err := s.Unsubscribe(); err != nil {
				l.closeErr = errors.Join(l.closeErr, fmt.Errorf("halo: %w", err))
			}
		}
		if l.own != nil {
			l.own.Close()
		}
	})
	return l.closeErr
}
