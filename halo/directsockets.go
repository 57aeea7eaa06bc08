package halo

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/solver"
)

// DirectStats counts the events of a link over TCP, for reports.
type DirectStats struct {
	Sockets   int    `json:"sockets"`
	Encrypted bool   `json:"encrypted"`
	Lost      uint64 `json:"lost"`             // times that the sockets broke
	OverNATS  uint64 `json:"over_nats"`        // exchanges sent over NATS because there was no socket
	Refused   uint64 `json:"refused"`          // connections of strangers
	Asked     uint64 `json:"asked"`            // requests for missing rows
	Resent    uint64 `json:"resent"`           // frames sent again over NATS
	Plain     uint64 `json:"plain"`            // bytes of the rows that were packed; see halo.compress
	Packed    uint64 `json:"packed"`           // bytes that were sent for them
	Reason    string `json:"reason,omitempty"` // why the sockets broke the last time
}

// sockets holds the present session of a link and makes new ones.
type sockets struct {
	opts    DirectOptions
	link    *FramedLink
	key     []byte
	tls     *tls.Config // nil: not encrypted
	streams int
	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	running sync.WaitGroup // the goroutines that make sessions

	listener net.Listener // of the first end

	// swap is held while a session is replaced, so that the readers of one have ended before those of the next begin.
	swap    sync.Mutex
	current atomic.Pointer[session]

	mu      sync.Mutex
	reason  string
	lost    uint64
	warned  uint64 // of the losses, those that were logged
	logged  bool   // a stranger was
	refused uint64

	overNATS atomic.Uint64
	strikes  atomic.Int32 // exchanges that had to be asked for since the sockets delivered a frame
}

func newSockets(o DirectOptions, offer *directOffer) (*sockets, error) {
	if o.NATS.Log == nil {
		o.NATS.Log = zap.NewNop()
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	key, err := linkKey(offer.Key, o.Key, offer.End)
	if err != nil {
		return nil, err
	}
	s := &sockets{opts: o, key: key, streams: offer.Streams}
	if len(offer.Certificate) > 0 {
		if err := s.trustCertificate(offer.Certificate); err != nil {
			return nil, err
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// use makes n the session of the link and ends the one before.
func (s *sockets) use(n *session) {
	s.swap.Lock()
	defer s.swap.Unlock()
	if old := s.current.Load(); old != nil {
		old.end(errors.New("the neighbour made a new connection"))
		old.running.Wait()
	}
	if s.ctx.Err() != nil {
		n.end(ErrClosed)
		return
	}
	s.strikes.Store(0)
	n.start()
	s.current.Store(n)
}

// live returns the session if it can carry frames, nil otherwise.
func (s *sockets) live() *session {
	n := s.current.Load()
	if n == nil || n.ended() {
		return nil
	}
	return n
}

// vacateTimeout bounds the wait for a writer that has only to note that it is done.
const vacateTimeout = 500 * time.Millisecond

// vacate implements carrier. If a socket still has not taken the rows of exchange-2, they came over NATS, and the
// socket is of no use.
func (s *sockets) vacate(_ context.Context, exchange solver.ExchangeNumber) error {
	n := s.current.Load()
	if n == nil || n.await(exchange, vacateTimeout, n.over) {
		return nil
	}
	n.end(errors.New("the neighbour had the rows over NATS before the socket took them"))
	n.running.Wait()
	return nil
}

// send implements carrier.
func (s *sockets) send(exchange solver.ExchangeNumber) bool {
	n := s.live()
	if n == nil {
		s.overNATS.Add(1)
		s.warn()
		return false
	}
	n.post(exchange)
	return true
}

// broken is called once by every session that ends.
func (s *sockets) broken(err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
	s.reason = err.Error()
}

// hurry makes Recv ask at once for the rows that an ended session has lost.
func (s *sockets) hurry() {
	if s.ctx.Err() != nil {
		return
	}
	select {
	case s.link.hurry <- struct{}{}:
	default:
	}
}

// warn logs the loss of the sockets when the first exchange goes over NATS. At the end of a run the neighbour may close
// its end first, which is no loss.
func (s *sockets) warn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warned == s.lost {
		return
	}
	s.warned = s.lost
	s.opts.NATS.Log.Warn("lost the socket; rows go over NATS until there is another one",
		zap.Int("neighbour", s.link.end.Neighbour), zap.String("reason", s.reason))
}

// maxStrikes exchanges that came only on request, while the sockets are there and deliver nothing, show that they are
// dead.
const maxStrikes = 3

// missed implements carrier. It ends a session that is silent, as after a cable was cut.
func (s *sockets) missed() {
	if n := s.live(); n != nil && s.strikes.Add(1) >= maxStrikes {
		n.end(errors.New("the socket is silent, while rows come over NATS"))
	}
}

// stranger counts a connection that was refused, and logs the first one.
func (s *sockets) stranger(from net.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	if !s.logged {
		s.logged = true
		s.opts.NATS.Log.Warn("refused a connection; further ones are only counted", zap.Stringer("from", from),
			zap.Error(err))
	}
}

func (s *sockets) stats() DirectStats {
	n := s.link.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	return DirectStats{Sockets: s.streams, Encrypted: s.tls != nil, Lost: s.lost, OverNATS: s.overNATS.Load(),
		Refused: s.refused, Asked: n.Asked, Resent: n.Resent,
		Plain: n.Plain, Packed: n.Packed, Reason: s.reason}
}

// close ends the session and all that makes others. The link calls it once.
func (s *sockets) close() (err error) {
	s.cancel()
	if s.listener != nil {
		err = s.listener.Close()
	}
	s.running.Wait()
	if n := s.current.Load(); n != nil {
		n.end(ErrClosed)
		n.running.Wait()
	}
	return err
}

// silence is how long sent bytes may stay without a confirmation of the other machine before a connection breaks.
const silence = 10 * time.Second

// tune sets up a new connection.
func tune(conn net.Conn, rows int) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	// Errors are ignored: the connection works without.
	_ = c.SetNoDelay(true)
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
		})
	}
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 5})
	if size := min(2*rows, maxSocketBuffer); size > minSocketBuffer {
		_ = c.SetWriteBuffer(size)
		_ = c.SetReadBuffer(size)
	}
}
