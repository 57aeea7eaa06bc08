package halo

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// maxHandshakes bounds the connections that have not proved yet that they belong to the link. More are closed at once.
const maxHandshakes = 16

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
			case <-time.After(pauseNeighbour):
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
