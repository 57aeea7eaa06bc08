package halo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
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

// pendingBytes is the smallest default of NATSOptions.Pending, added up over the lanes of a link.
const pendingBytes = 64 << 20

// NATSOptions tune a link over NATS; only Conn and Timeout have to be set.
type NATSOptions struct {
	Conn pubsub.Conn
	// Dial, if not nil, makes connections for this link alone, used in place of Conn and closed with the link. The rows
	// of one side then do not wait behind those of the other, nor rows behind other messages.
	Dial        func(context.Context) (pubsub.Conn, error)
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
}

// subject returns the subject on which a rank of the run listens.
func (o *NATSOptions) subject(run RunID, what string, receiver int, side fmt.Stringer) string {
	prefix := o.Prefix
	if prefix == "" {
		prefix = "jacobi." + run.String()
	}
	return fmt.Sprintf("%s.%s.%d.%s", prefix, what, receiver, side)
}

// complete returns o with its defaults for a link.
func (o NATSOptions) complete(end End) NATSOptions {
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
		o.Pending = max(pendingBytes, 8*end.RecvBytes()) / o.lanes(end)
	}
	return o
}

// NewNATS opens one end of a link over NATS. When it returns, the server knows the subscriptions of this end, so the
// neighbour may send.
func NewNATS(ctx context.Context, end End, o NATSOptions) (*FramedLink, error) {
	if err := end.check(); err != nil {
		return nil, err
	}
	return openLink(ctx, end, o, nil)
}

// natsCarrier carries frames over core NATS, which delivers at most once and keeps the order only while the connection
// lives. Frames go to the subject PREFIX.halo.RECEIVER.SIDE, with the receiver's side, and those of further lanes to
// PREFIX.halo.RECEIVER.SIDE.LANE. Requests for rows go to PREFIX.halo.SENDER.SIDE.ask.
type natsCarrier struct {
	writers // a goroutine for each lane, so that Send of many bytes waits neither for the seal nor for the connection
	lanes   []*lane
	ask     string // subject of the requests sent
	subs    []pubsub.Subscription
	lost    atomic.Uint64
}

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

// lane is a connection that carries frames.
type lane struct {
	conn    pubsub.Conn
	own     bool   // the link closes it
	subject string // of the frames sent
}

// connect makes the connections. If one of the further ones is refused, its lane uses the first one.
func (c *natsCarrier) connect(ctx context.Context) error {
	o, there := &c.link.opts, c.link.end.Facing()
	theirs := o.subject(there.Run, "halo", there.Rank, there.Side)
	c.ask = theirs + ".ask"
	for i := range o.lanes(c.link.end) {
		a := &lane{conn: o.Conn, subject: theirs}
		if i > 0 {
			a.subject = fmt.Sprintf("%s.%d", theirs, i)
		}
		if o.Dial != nil {
			own, err := o.Dial(ctx)
			switch {
			case err == nil:
				a.conn, a.own = own, true
			case i == 0:
				return err
			default:
				a.conn = c.lanes[0].conn
				o.Log.Debug("a link has fewer connections than it could use", zap.Error(err))
			}
		}
		c.lanes = append(c.lanes, a)
		if a.conn == nil {
			return errors.New("no connection")
		}
	}
	return nil
}

// maxFrame returns the most bytes of a frame.
func (c *natsCarrier) maxFrame() int {
	most := c.link.opts.MaxFrame
	if limit := c.lanes[0].conn.MaxPayload(); limit > 0 {
		most = min(most, int(min(limit, 1<<30)))
	}
	return most
}

// status returns the state of the connection of requests.
func (c *natsCarrier) status() pubsub.Status { return c.lanes[0].conn.Status() }

// listen subscribes to what the neighbour sends, and starts the writers.
func (c *natsCarrier) listen(ctx context.Context) error {
	l := c.link
	mine := l.opts.subject(l.end.Run, "halo", l.end.Rank, l.end.Side)
	if err := c.subscribe(c.lanes[0].conn, mine+".ask", c.onAsk); err != nil {
		return err
	}
	for i, a := range c.lanes {
		subject := mine
		if i > 0 {
			subject = fmt.Sprintf("%s.%d", mine, i)
		}
		unpacker := new(packer) // of the subscription's goroutine
		if err := c.subscribe(a.conn, subject, func(m pubsub.Message) { l.onRows(m, unpacker) }); err != nil {
			return err
		}
		if err := c.flush(ctx, a.conn); err != nil {
			return err
		}
	}
	c.start(len(c.lanes))
	return nil
}

func (c *natsCarrier) subscribe(conn pubsub.Conn, subject string, handle func(pubsub.Message)) error {
	sub, err := conn.Subscribe(subject, handle)
	if err == nil {
		c.subs = append(c.subs, sub)
		err = sub.SetPendingLimits(-1, c.link.opts.Pending)
	}
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return nil
}

// flush returns when the server knows the subscriptions that were made through conn.
func (c *natsCarrier) flush(ctx context.Context, conn pubsub.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, c.link.opts.Timeout)
	defer cancel()
	if err := conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("flush the subscriptions: %w", err)
	}
	return nil
}

// send implements carrier.
func (c *natsCarrier) send(exchange solver.ExchangeNumber) bool {
	c.post(exchange)
	return true
}

// vacate implements carrier.
func (c *natsCarrier) vacate(ctx context.Context, exchange solver.ExchangeNumber) error {
	l := c.link
	if c.await(exchange, l.opts.Timeout, ctx.Done()) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.end.timeout(true, exchange, l.name, l.opts.Timeout, "the connection to NATS does not take them")
}

// missed implements carrier.
func (c *natsCarrier) missed() {}

// publishPart publishes a part of the rows in slot on lane i.
func (c *natsCarrier) publishPart(i int, slot *outSlot, part int) error {
	f, payload := c.part(i, slot, part)
	msg := room(&c.packing[i].frame, headerSize+len(payload))
	f.put(msg, payload) // a packed one is in its place
	if err := c.publish(c.lanes[i], c.lanes[i].subject, msg); err != nil {
		return fmt.Errorf("send exchange %d: %w", slot.exchange, err)
	}
	return nil
}

// publish returns an error only if sending again would fail, too. A message that is lost while the client reconnects is
// counted, and the neighbour asks for it.
func (c *natsCarrier) publish(a *lane, subject string, data []byte) error {
	err := a.conn.Publish(subject, data)
	if !errors.Is(err, pubsub.ErrLost) {
		return err
	}
	c.lost.Add(1)
	c.link.opts.Log.Debug("frame lost", zap.String("subject", subject), zap.Error(err))
	return nil
}

// onAsk answers a neighbour that asks for an exchange. It runs on the subscription's goroutine.
func (c *natsCarrier) onAsk(m pubsub.Message) {
	l := c.link
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
	slot, pending := l.out.find(f.exchange)
	switch {
	case pending:
		answer, msg := l.end.frame(kindPending, f.exchange), make([]byte, headerSize)
		answer.put(msg, nil)
		err = c.publish(c.lanes[0], c.lanes[0].subject, msg)
	case slot != nil: // otherwise the request is late: the neighbour has received the exchange
		err = l.out.publish(slot, has, func(frame []byte) error {
			l.resent.Add(1)
			return c.publish(c.lanes[0], c.lanes[0].subject, frame)
		})
	}
	if err != nil {
		l.opts.Log.Warn("cannot send rows again", zap.Error(l.wrap("resend", f.exchange, err)))
	}
}

// request asks the neighbour for an exchange, without the parts in the bitmap has.
func (c *natsCarrier) request(exchange solver.ExchangeNumber, has []byte) error {
	f, msg := c.link.end.frame(kindAsk, exchange), make([]byte, headerSize+len(has))
	f.put(msg, has)
	return c.publish(c.lanes[0], c.ask, msg)
}

// close implements carrier.
func (c *natsCarrier) close() (err error) {
	for _, s := range c.subs {
		if failed := s.Unsubscribe(); failed != nil {
			err = errors.Join(err, fmt.Errorf("halo: %w", failed))
		}
	}
	for _, a := range c.lanes {
		if a.own {
			a.conn.Close()
		}
	}
	c.running.Wait()
	return err
}
