package main

import (
	"context"
	"errors"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
)

// twoWays publishes on one connection and receives on another one.
type twoWays struct {
	*wire.Conn
	in *wire.Conn
}

// Subscribe implements halo.Conn.
func (c *twoWays) Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error) {
	return c.in.Subscribe(subject, handle)
}

// FlushWithContext implements halo.Conn.
func (c *twoWays) FlushWithContext(ctx context.Context) error {
	return errors.Join(c.Conn.FlushWithContext(ctx), c.in.FlushWithContext(ctx))
}

// Status implements halo.Conn.
func (c *twoWays) Status() pubsub.Status {
	if s := c.in.Status(); s != pubsub.Connected {
		return s
	}
	return c.Conn.Status()
}

// Close implements halo.OwnConn.
func (c *twoWays) Close() {
	c.Conn.Close()
	c.in.Close()
}
