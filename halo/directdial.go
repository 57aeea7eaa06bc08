package halo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
)

// The second end waits redialFirst before it connects again, and twice as long each time up to redialLast.
const (
	redialFirst = 100 * time.Millisecond
	redialLast  = 5 * time.Second
)

// dial makes a session with the end that listens at one of addresses.
func (s *sockets) dial(ctx context.Context, addresses []string) (*session, error) {
	n := newSession(s)
	if err := s.dialAll(ctx, addresses, n); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// dialAll makes the connections of n.
func (s *sockets) dialAll(ctx context.Context, addresses []string, n *session) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.DialTimeout)
	defer cancel()
	h := hello{streams: s.streams, session: rand.Uint64()}
	first, err := s.dialAny(ctx, addresses, h)
	if err != nil {
		return err
	}
	n.conns = append(n.conns, first.conn)
	for h.stream = 1; h.stream < h.streams; h.stream++ {
		p, err := s.dialOne(ctx, first.conn.RemoteAddr().String(), h)
		if err != nil {
			return err
		}
		n.conns = append(n.conns, p.conn)
		if err := p.confirm(); err != nil {
			return err
		}
	}
	// The first end begins with the last confirmation, so this is the one that may come late.
	if err := first.confirm(); err != nil {
		return err
	}
	for _, c := range n.conns {
		if err := c.SetDeadline(time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

// dialAny tries all addresses at once and returns the first connection that leads to the neighbour.
func (s *sockets) dialAny(ctx context.Context, addresses []string, h hello) (*prover, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		p   *prover
		err error
	}
	results := make(chan result, len(addresses))
	for _, at := range addresses {
		go func() {
			p, err := s.dialOne(ctx, at, h)
			results <- result{p, err}
		}()
	}
	var won *prover
	var errs []error
	for range addresses {
		r := <-results
		switch {
		case r.err != nil:
			errs = append(errs, r.err)
		case won == nil:
			won = r.p
			cancel()
		default:
			_ = r.p.conn.Close()
		}
	}
	if won == nil {
		return nil, errors.Join(errs...)
	}
	return won, nil
}

// dialOne connects to the end at address, which must prove that it has the key. The connection keeps the deadline of
// ctx.
func (s *sockets) dialOne(ctx context.Context, address string, h hello) (*prover, error) {
	fail := func(err error) (*prover, error) {
		return nil, fmt.Errorf("no connection to %s: %w", address, err)
	}
	deadline, _ := ctx.Deadline()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // the address is named already
		}
		return fail(err)
	}
	tune(conn, s.link.end.SendBytes())
	raw := conn
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	if s.tls != nil {
		conn = tls.Client(conn, s.tls)
	}
	p, err := (*prover)(nil), raw.SetDeadline(deadline)
	if err == nil {
		p, err = h.greet(conn, s.key)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = raw.Close()
		return fail(err)
	}
	return p, nil
}

// redial makes a new session whenever the present one has ended.
func (s *sockets) redial(addresses []string) {
	for {
		select {
		case <-s.current.Load().over:
		case <-s.ctx.Done():
			return
		}
		s.current.Load().running.Wait()
		for wait := redialFirst; s.live() == nil; wait = min(2*wait, redialLast) {
			select {
			case <-time.After(wait):
			case <-s.ctx.Done():
				return
			}
			n, err := s.dial(s.ctx, addresses)
			if err != nil {
				s.opts.NATS.Log.Debug("no socket", zap.Int("neighbour", s.link.end.Neighbour), zap.Error(err))
				continue
			}
			s.use(n)
			s.opts.NATS.Log.Info("rows go over a socket again", zap.Int("neighbour", s.link.end.Neighbour))
		}
	}
}

const (
	// maxHandshakes bounds the connections that have not proved yet that they belong to the link. More are closed at
	// once.
	maxHandshakes = 16
	acceptPause   = 20 * time.Millisecond // after an error of the listener
)

// assembly collects the connections of a session.
type assembly struct {
	mu      sync.Mutex
	session uint64
	conns   []net.Conn // by stream; nil: not there yet
	missing int
}

// accept takes connections until close closes the listener.
func (s *sockets) accept() {
	var a assembly
	defer a.drop()
	var handshakes sync.WaitGroup
	defer handshakes.Wait()
	free := make(chan struct{}, maxHandshakes)
	for s.ctx.Err() == nil {
		conn, err := s.listener.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select { // for instance, there are too many open files
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
			}
			continue
		}
		select {
		case free <- struct{}{}:
		default:
			s.stranger(conn.RemoteAddr(), fmt.Errorf("%d others have not identified themselves yet", maxHandshakes))
			_ = conn.Close()
			continue
		}
		handshakes.Go(func() {
			defer func() { <-free }()
			s.admit(conn, &a)
		})
	}
}

// admit takes a connection into a session if it proves that it belongs to the link, and closes it otherwise.
func (s *sockets) admit(raw net.Conn, a *assembly) {
	from, conn := raw.RemoteAddr(), raw
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-s.ctx.Done():
			_ = raw.SetDeadline(time.Unix(1, 0))
		case <-done:
		}
	}()
	tune(raw, s.link.end.SendBytes())
	if s.tls != nil {
		conn = tls.Server(raw, s.tls)
	}
	var h hello
	err := raw.SetDeadline(time.Now().Add(s.opts.DialTimeout))
	if err == nil {
		h, err = verifyHello(conn, s.key, s.streams)
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = raw.Close()
		if !errors.Is(err, errUnused) && s.ctx.Err() == nil {
			s.stranger(from, err)
		}
		return
	}
	if conns := a.add(h, conn); conns != nil {
		n := newSession(s)
		n.conns = conns
		s.use(n)
	}
}

// add returns the connections of a session when the last of them is there.
func (a *assembly) add(h hello, conn net.Conn) []net.Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conns == nil || a.session != h.session {
		a.discard()
		a.session, a.conns, a.missing = h.session, make([]net.Conn, h.streams), h.streams
	}
	if a.conns[h.stream] != nil {
		_ = a.conns[h.stream].Close()
		a.missing++
	}
	a.conns[h.stream] = conn
	a.missing--
	if a.missing > 0 {
		return nil
	}
	conns := a.conns
	a.conns = nil
	return conns
}

// drop closes the connections of a session that is not complete.
func (a *assembly) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.discard()
}

func (a *assembly) discard() {
	for _, c := range a.conns {
		if c != nil {
			_ = c.Close()
		}
	}
	a.conns = nil
}
