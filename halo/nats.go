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
	DefaultMaxFrame    = 128 << 10
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
	// Dial, if not nil, makes connections for this link alone, used in place of Conn. The rows of one side then do not
	// wait behind those of the other, nor rows behind other messages.
	Dial        func(context.Context) (OwnConn, error)
	Publisher   Publisher     // default: the connection
	Prefix      string        // of the subjects of the run; default jacobi.RUN
	Log         *zap.Logger   // default: none
	Timeout     time.Duration // bounds Recv
	MaxFrame    int           // bytes; default DefaultMaxFrame; never above the server's max_payload
	AskAfter    time.Duration // how long a receiver waits before it asks; default DefaultAskAfter
	MaxAskAfter time.Duration // the wait doubles up to this; default DefaultMaxAskAfter
	Lanes       int           // connections; default: one, and with Dial more for large exchanges
	Compress    Compress      // whether rows are packed; default: never
	// bytes of frames of a lane that may queue for this rank before the client drops them; default: for all lanes
	// together the larger of pendingBytes and 8 exchanges
	Pending int

	now func() time.Time // the clock of Split; tests have another one
}

// NATSStats counts the events of a link over NATS.
type NATSStats struct {
	Asked      uint64 // requests for missing rows
	Resent     uint64 // frames sent again on request
	Duplicates uint64 // frames received again
	Refused    uint64 // frames received that do not belong to the link, or were damaged
	Lost       uint64 // frames that the client did not accept, for instance during a reconnection
	Dropped    uint64 // frames that the client dropped because this rank handled them too slowly
	Plain      uint64 // bytes of the rows that were packed
	Packed     uint64 // bytes that were sent for them
	// MostBytes bounds the memory of frames: two exchanges kept for the neighbour, two exchanges received, and the
	// client's queues.
	MostBytes int64
}

// NATSLink is a Link over core NATS, which delivers at most once and keeps the order only while the connection lives.
// Frames go to the subject PREFIX.halo.RECEIVER.SIDE, with the receiver's side, and those of further lanes to
// PREFIX.halo.RECEIVER.SIDE.LANE. Each end keeps the rows of the last two exchanges that it sent. Two are enough: an
// end that sends exchange n+2 has received exchange n+1, and its neighbour sent that only after it had received
// exchange n. A receiver that waits for too long asks on PREFIX.halo.SENDER.SIDE.ask. The sender's subscription
// answers, even while the sender computes. Duplicates and reorderings change nothing.
//
// Nothing confirms the last exchange: an end that has received its neighbour's rows does not know whether the neighbour
// has received its own. So the owner of a link keeps it open until all ranks have received their last exchange (a run
// ends with a barrier).
type NATSLink struct {
	end     End
	opts    NATSOptions
	name    string   // of the transport, for messages
	fast    *sockets // sends frames in place of NATS while it can; nil: there is no other way
	ask     string   // subject of the requests sent
	lanes   []*lane
	running sync.WaitGroup // the lanes
	flying  inFlight
	choice  choice
	stamps  stamps
	subs    []pubsub.Subscription
	out     outbox
	in      inbox

	hurry     chan struct{} // holds at most one request to Recv to ask at once
	closed    chan struct{}
	broken    atomic.Pointer[error] // why nothing can be sent any more
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
	return openLink(ctx, end, o, nil)
}

// openLink opens one end of a link, whose frames go through fast while that has a connection.
func openLink(ctx context.Context, end End, o NATSOptions, fast *sockets) (*NATSLink, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.now == nil {
		o.now = time.Now
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
		o.Pending = max(pendingBytes, 8*end.RecvBytes()) / o.lanes(end)
	}
	l := &NATSLink{end: end, opts: o, name: TransportNATS, flying: newInFlight(), hurry: make(chan struct{}, 1),
		closed: make(chan struct{}), choice: choice{mode: o.Compress}}
	streams := o.lanes(end)
	if fast != nil {
		l.fast, l.name, streams = fast, TransportDirect, fast.streams
	}
	if err := l.open(ctx, streams); err != nil {
		return nil, errors.Join(end.wrap("open", 0, l.name, err), l.Close())
	}
	return l, nil
}

func (l *NATSLink) open(ctx context.Context, streams int) error {
	there := l.end.Facing()
	mine := l.opts.subject(l.end.Run, "halo", l.end.Rank, l.end.Side)
	theirs := l.opts.subject(l.end.Run, "halo", there.Rank, there.Side)
	l.ask = theirs + ".ask"
	if err := l.openLanes(ctx, l.opts.lanes(l.end), theirs); err != nil {
		return err
	}
	maxFrame := l.opts.MaxFrame
	if limit := l.lanes[0].conn.MaxPayload(); limit > 0 {
		maxFrame = min(maxFrame, int(min(limit, 1<<30)))
	}
	if err := l.out.init(&l.end, maxFrame, streams); err != nil {
		return err
	}
	l.in.init(l.end.RecvBytes(), l.opts.now)
	if err := l.subscribe(l.lanes[0].conn, mine+".ask", l.onAsk); err != nil {
		return err
	}
	for i, a := range l.lanes {
		subject := mine
		if i > 0 {
			subject = fmt.Sprintf("%s.%d", mine, i)
		}
		unpacker := new(packer) // of the subscription's goroutine
		onRows := func(m pubsub.Message) { l.onRows(m, unpacker) }
		if err := l.subscribe(a.conn, subject, onRows); err != nil {
			return err
		}
		if err := l.flush(ctx, a.conn); err != nil {
			return err
		}
		l.running.Go(func() { l.run(i) })
	}
	return nil
}

func (l *NATSLink) subscribe(conn Conn, subject string, handle func(pubsub.Message)) error {
	sub, err := conn.Subscribe(subject, handle)
	if err == nil {
		l.subs = append(l.subs, sub)
		err = sub.SetPendingLimits(-1, l.opts.Pending)
	}
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return nil
}

// Send keeps the rows, for the lanes and for a request, and has the lanes publish them. It does not wait for the
// neighbour.
func (l *NATSLink) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("send", exchange, l.name, len(rows), l.end.SendBytes()); err != nil {
		return err
	}
	if err := l.usable(ctx); err != nil {
		return l.wrap("send", exchange, err)
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if err := l.vacate(ctx, exchange); err != nil {
		return l.wrap("send", exchange, err)
	}
	now := l.opts.now()
	l.choice.posted.Store(&now)
	l.stamps.posted(exchange, now)
	l.out.keep(exchange, rows)
	if l.fast == nil || !l.fast.send(exchange) {
		l.post(exchange)
	}
	return nil
}

// usable returns why the link cannot be used.
func (l *NATSLink) usable(ctx context.Context) error {
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
	if l.lanes[0].conn.Status() == pubsub.Closed {
		return pubsub.ErrClosed
	}
	return nil
}

// wrap adds the operation to err. Close may close the connection while a call uses it: the call then reports ErrClosed.
func (l *NATSLink) wrap(op string, exchange solver.ExchangeNumber, err error) error {
	if errors.Is(err, pubsub.ErrClosed) && l.isClosed() {
		err = ErrClosed
	}
	return l.end.wrap(op, exchange, l.name, err)
}

func (l *NATSLink) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// fail makes later calls fail with err, and a Recv that waits.
func (l *NATSLink) fail(err error) {
	if l.isClosed() {
		return // the connections are closed, too
	}
	l.broken.CompareAndSwap(nil, &err)
	l.in.fail(err)
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
		err = l.publish(l.lanes[0], l.lanes[0].subject, msg)
	case outKept:
		err = l.out.publish(slot, has, func(frame []byte) error {
			l.resent.Add(1)
			return l.publish(l.lanes[0], l.lanes[0].subject, frame)
		})
	case outGone: // a late request: the neighbour has received the exchange
	}
	if err != nil {
		l.opts.Log.Warn("cannot send rows again", zap.Error(l.wrap("resend", f.exchange, err)))
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
		Refused: l.refused.Load(), Lost: l.lost.Load(),
		Plain: l.choice.plain.Load(), Packed: l.choice.packed.Load(),
		MostBytes: l.out.bytes() + 2*int64(l.end.RecvBytes())}
	for _, sub := range l.subs {
		s.MostBytes += int64(l.opts.Pending)
		if n, err := sub.Dropped(); err == nil { // it fails once closed
			s.Dropped += uint64(n)
		}
	}
	return s
}

// Close ends calls in progress, the subscriptions, and the link's own connections if it has any.
func (l *NATSLink) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		for _, s := range l.subs {
			if err := s.Unsubscribe(); err != nil {
				l.closeErr = errors.Join(l.closeErr, fmt.Errorf("halo: %w", err))
			}
		}
		for _, a := range l.lanes {
			if a.own != nil {
				a.own.Close()
			}
		}
		l.running.Wait()
	})
	return l.closeErr
}
