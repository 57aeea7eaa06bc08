package view

import (
	"context"
	"net"
	"slices"
	"sync"
)

// limited is a listener of at most a number of connections. Beyond it, a new one takes the place of the oldest one that
// has not shown the token, so strangers do not shut out those who have it; without such a one it is closed at once.
type limited struct {
	net.Listener
	most int

	mu        sync.Mutex
	strangers []*counted // that have not shown the token, the oldest first
	admitted  int        // others that are open
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &counted{Conn: conn, from: l}
		oldest, room := l.enter(c)
		if oldest != nil {
			_ = oldest.Conn.Close() // its server notices, and closes it again
		}
		if room {
			return c, nil
		}
		_ = conn.Close()
	}
}

// enter counts c, and returns the connection that has to make room for it. room is false if there is none.
func (l *limited) enter(c *counted) (oldest *counted, room bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.strangers)+l.admitted >= l.most {
		if len(l.strangers) == 0 {
			return nil, false
		}
		oldest, l.strangers = l.strangers[0], l.strangers[1:]
		oldest.left = true
	}
	l.strangers = append(l.strangers, c)
	return oldest, true
}

// counted is a connection that makes room for another one when it is closed.
type counted struct {
	net.Conn
	from *limited
	// The mutex of from guards these.
	admitted, left bool
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

func (c *counted) leave() {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	switch {
	case c.left:
	case c.admitted:
		c.from.admitted--
	default:
		c.forget()
	}
	c.left = true
}

// forget removes c from the strangers.
func (c *counted) forget() {
	c.from.strangers = slices.DeleteFunc(c.from.strangers, func(other *counted) bool { return other == c })
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// admit keeps the connection of a request that has shown the token.
func admit(ctx context.Context) {
	c, ok := ctx.Value(connKey{}).(*counted)
	if !ok {
		return
	}
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if !c.left && !c.admitted {
		c.forget()
		c.admitted = true
		c.from.admitted++
	}
}
