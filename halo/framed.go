package halo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

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
	stamps   stamps
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
	l.in.init(l.end.RecvBytes(), l.opts.now)
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
	now := l.opts.now()
	l.stamps.posted(exchange, now)
	l.out.keep(exchange, rows, l.choice.post(exchange, len(rows) == l.end.SendBytes(), now))
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

// sent notes that the connections have taken the rows of exchange.
func (l *FramedLink) sent(exchange solver.ExchangeNumber) { l.stamps.sent(exchange, l.opts.now()) }

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
	conn    Conn
	own     OwnConn // nil: the connection is another one's
	subject string  // of the frames sent
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
				a.conn, a.own = own, own
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

// RunID identifies one start of a run.
type RunID [16]byte

// RunIDOf returns the id of the run called name: the first 16 bytes of the SHA-256 of name. Every start of a run has a
// new name, a restart included.
func RunIDOf(name string) RunID {
	sum := sha256.Sum256([]byte(name))
	return RunID(sum[:len(RunID{})])
}

// String returns the id as 32 hexadecimal digits, which fit into a NATS subject.
func (id RunID) String() string { return hex.EncodeToString(id[:]) }

// End describes one end of a link: a side of a rank, and the rows sent and received there. The two ends of a link
// mirror each other (see Facing); every transport checks that they do.
type End struct {
	Run       RunID
	Rank      int
	Neighbour int         // equals Rank for a single rank with periodic top and bottom
	Side      solver.Side // of Rank; the neighbour's is the opposite one
	NX        int         // values a row
	DType     solver.DType
	Send      solver.Stripe // rows of Rank that fill the neighbour's halo: the most that an exchange sends
	Recv      solver.Stripe // rows of Neighbour that fill Rank's halo: the most that an exchange receives
}

// Ends returns the ends of rank, by side, for a mesh divided into stripes with halos of depth rows. An end is nil where
// the mesh ends.
func Ends(run RunID, mesh solver.Mesh, stripes []solver.Stripe, depth, rank int) [2]*End {
	n := len(stripes)
	end := func(side solver.Side, neighbour int) *End {
		mine, theirs := stripes[rank], stripes[neighbour]
		e := &End{Run: run, Rank: rank, Neighbour: neighbour, Side: side, NX: mesh.NX, DType: mesh.DType}
		if side == solver.Top {
			e.Send = solver.Stripe{Lo: mine.Lo, Hi: mine.Lo + depth}
			e.Recv = solver.Stripe{Lo: theirs.Hi - depth, Hi: theirs.Hi}
		} else {
			e.Send = solver.Stripe{Lo: mine.Hi - depth, Hi: mine.Hi}
			e.Recv = solver.Stripe{Lo: theirs.Lo, Hi: theirs.Lo + depth}
		}
		return e
	}
	var ends [2]*End
	if rank > 0 || mesh.PeriodicRows() {
		ends[solver.Top] = end(solver.Top, (rank+n-1)%n)
	}
	if rank < n-1 || mesh.PeriodicRows() {
		ends[solver.Bottom] = end(solver.Bottom, (rank+1)%n)
	}
	return ends
}

// Facing returns the other end of the link.
func (e End) Facing() End {
	e.Rank, e.Neighbour = e.Neighbour, e.Rank
	e.Side = e.Side.Opposite()
	e.Send, e.Recv = e.Recv, e.Send
	return e
}

// SendBytes returns the most bytes of an exchange that Send takes: the size of the rows Send, stored without gaps.
func (e End) SendBytes() int { return e.bytes(e.Send) }

// RecvBytes returns the most bytes of an exchange that Recv yields: the size of the rows Recv, stored without gaps.
func (e End) RecvBytes() int { return e.bytes(e.Recv) }

func (e End) bytes(rows solver.Stripe) int { return rows.Rows() * e.NX * e.DType.Size() }

func (e End) check() error {
	switch {
	case e.NX < 1 || e.NX > math.MaxUint32:
		return fmt.Errorf("halo: link of rank %d: %d columns", e.Rank, e.NX)
	case e.DType != solver.Float32 && e.DType != solver.Float64:
		return fmt.Errorf("halo: link of rank %d: %v", e.Rank, e.DType)
	case e.Side != solver.Top && e.Side != solver.Bottom:
		return fmt.Errorf("halo: link of rank %d: side %d", e.Rank, e.Side)
	case e.Rank < 0 || e.Neighbour < 0 || max(e.Rank, e.Neighbour) > math.MaxUint32:
		return fmt.Errorf("halo: link between ranks %d and %d", e.Rank, e.Neighbour)
	}
	for _, s := range []solver.Stripe{e.Send, e.Recv} {
		if s.Lo < 0 || s.Hi <= s.Lo || s.Hi > math.MaxUint32 || s.Rows() > math.MaxInt/16/e.NX {
			return fmt.Errorf("halo: link of rank %d: rows %v", e.Rank, s)
		}
	}
	return nil
}
