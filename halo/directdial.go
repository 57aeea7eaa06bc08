package halo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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
	ctx, cancel := context.WithTimeout(ctx, s.opts.DialTimeout)
	defer cancel()
	h := hello{streams: s.streams, session: rand.Uint64()}
	first, err := s.dialAny(ctx, addresses, h)
	if err != nil {
		return nil, err
	}
	n := newSession(s)
	n.conns = append(n.conns, first.conn)
	for h.stream = 1; h.stream < h.streams; h.stream++ {
		p, err := s.dialOne(ctx, first.conn.RemoteAddr().String(), h)
		if err != nil {
			n.close()
			return nil, err
		}
		n.conns = append(n.conns, p.conn)
		if err := p.confirm(); err != nil {
			n.close()
			return nil, err
		}
	}
	// The first end begins with the last confirmation, so this is the one that may come late.
	if err := first.confirm(); err != nil {
		n.close()
		return nil, err
	}
	for _, c := range n.conns {
		if err := c.SetDeadline(time.Time{}); err != nil {
			n.close()
			return nil, err
		}
	}
	return n, nil
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
