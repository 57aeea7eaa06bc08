package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
)

// Conn is a connection to NATS, a pubsub.Conn. If its run has a secret, it seals the messages that it sends and refuses
// messages that are not sealed.
type Conn struct {
	nc     *nats.Conn
	seal   *seal // nil: messages are not sealed
	log    *zap.Logger
	faults *faults

	buffers sync.Pool // of *[]byte, for sealed messages; the client copies them
	refused *atomic.Uint64
}

var _ pubsub.Conn = (*Conn)(nil)

// Over returns a Conn that does not seal messages, over a connection that was made in another way.
func Over(nc *nats.Conn) *Conn {
	return &Conn{nc: nc, log: zap.NewNop(), faults: &faults{nc: nc, where: nc.ConnectedUrlRedacted()},
		refused: new(atomic.Uint64)}
}

// Sealed reports whether messages are sealed.
func (c *Conn) Sealed() bool { return c.seal != nil }

// Raw returns the underlying connection, whose messages are not sealed.
func (c *Conn) Raw() *nats.Conn { return c.nc }

// Refused returns the number of messages refused because they were not sealed with the run's secret, on this connection
// and those that share its count.
func (c *Conn) Refused() uint64 { return c.refused.Load() }

// Publish implements pubsub.Conn.
func (c *Conn) Publish(subject string, data []byte) error { return c.PublishRequest(subject, "", data) }

// PublishRequest sends data to the subscribers of subject, who answer by Publish to reply; with "" they do not.
func (c *Conn) PublishRequest(subject, reply string, data []byte) error {
	if c.seal != nil {
		b, ok := c.buffers.Get().(*[]byte)
		if !ok {
			b = new([]byte)
		}
		defer c.buffers.Put(b)
		*b = c.seal.close((*b)[:0], subject, reply, data)
		data = *b
	}
	if reply == "" {
		return c.published(len(data), c.nc.Publish(subject, data))
	}
	return c.published(len(data), c.nc.PublishRequest(subject, reply, data))
}

// NewInbox returns a unique subject for answers.
func (c *Conn) NewInbox() string { return c.nc.NewInbox() }

// Subscribe implements pubsub.Conn.
func (c *Conn) Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error) {
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		if c.seal == nil || !nobodyListens(m) && c.open(m) == nil {
			handle(message(m))
		}
	})
	if err != nil {
		return nil, err
	}
	return subscription{sub}, nil
}

// nobodyListens reports whether the server says by m that a request has no responders. It cannot seal that.
func nobodyListens(m *nats.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

func message(m *nats.Msg) pubsub.Message {
	return pubsub.Message{Subject: m.Subject, Reply: m.Reply, Data: m.Data}
}

// subscription is a pubsub.Subscription.
type subscription struct{ *nats.Subscription }

func (s subscription) Unsubscribe() error {
	if err := s.Subscription.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("unsubscribe from %s: %w", s.Subject, err)
	}
	return nil
}

// Unseal decrypts, in place, a message that was received by other means than Subscribe.
func (c *Conn) Unseal(subject, reply string, data []byte) ([]byte, error) {
	if c.seal == nil {
		return data, nil
	}
	return c.seal.open(subject, reply, data)
}

// Between returns c with another seal, for two processes that have agreed on a key of 32 bytes. Closing it closes c.
func (c *Conn) Between(key []byte) (*Conn, error) {
	s, err := sealWith(key)
	return &Conn{nc: c.nc, seal: s, log: c.log, faults: c.faults, refused: new(atomic.Uint64)}, err
}

// OfRun returns c with the seal of a run, as Connect makes it from the run's secret. Closing it closes c.
func (c *Conn) OfRun(secretFile, runID string) (*Conn, error) {
	s, err := newSeal(secretFile, runID)
	return &Conn{nc: c.nc, seal: s, log: c.log, faults: c.faults, refused: new(atomic.Uint64)}, err
}

// Shared returns the key of c's seal, from which other keys can be derived; nil if messages are not sealed.
func (c *Conn) Shared() []byte {
	if c.seal == nil {
		return nil
	}
	return c.seal.key
}

// open unseals m. It counts messages that it refuses, and logs the first one.
func (c *Conn) open(m *nats.Msg) (err error) {
	if m.Data, err = c.seal.open(m.Subject, m.Reply, m.Data); err != nil && c.refused.Add(1) == 1 {
		c.log.Warn("refused a message; further ones are only counted", zap.String("subject", m.Subject), zap.Error(err))
	}
	return err
}

// RequestWithContext implements pubsub.Conn. It ignores answers that are not sealed: the right one may still come.
func (c *Conn) RequestWithContext(ctx context.Context, subject string, data []byte) (answer pubsub.Message, err error) {
	if c.seal == nil {
		m, err := c.nc.RequestWithContext(ctx, subject, data)
		if err != nil {
			return answer, c.published(len(data), err)
		}
		return message(m), nil
	}
	reply := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(reply)
	if err != nil {
		return answer, fmt.Errorf("subscribe for an answer: %w", c.published(0, err))
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	if err := c.PublishRequest(subject, reply, data); err != nil {
		return answer, err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) { // that there are no responders is not sealed either
			return answer, err
		}
		if err == nil && c.open(m) == nil {
			return message(m), nil
		}
	}
}

// FlushWithContext implements pubsub.Conn.
func (c *Conn) FlushWithContext(ctx context.Context) error {
	for {
		err := c.nc.FlushWithContext(ctx)
		if !errors.Is(err, nats.ErrConnectionClosed) || c.nc.IsClosed() {
			return err
		}
		// The connection broke. The client makes it again, and a flush then waits for that.
	}
}

// MaxPayload returns the maximum size of a message, in bytes.
func (c *Conn) MaxPayload() int64 {
	size := c.nc.MaxPayload()
	if c.seal != nil {
		size -= int64(c.seal.aead.Overhead())
	}
	return size
}

// Status implements pubsub.Conn.
func (c *Conn) Status() pubsub.Status { return pubsub.Status(c.nc.Status().String()) }

// Server returns the address of the server, without secrets.
func (c *Conn) Server() string {
	where, err := publicURL(c.nc.ConnectedUrl())
	if err != nil {
		return c.nc.Status().String() // not connected
	}
	return where
}

// Close implements pubsub.Conn.
func (c *Conn) Close() { c.nc.Close() }

// faults keeps the errors of a connection: why it could not be made again, and what the server refused.
type faults struct {
	server configs.NATS
	where  string      // the server's addresses, without secrets
	notify func(error) // receives the first refusal; may be nil

	mu        sync.Mutex
	nc        *nats.Conn // nil until the first connection is made
	reconnect error      // error of the last attempt to reconnect; nil while connected
	refused   error
}

// failed sets the error of the last attempt to reconnect; nil if there was none, or it succeeded.
func (f *faults) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconnect = err
}

// look takes over the client's last error. The client calls no handler when the server answers an attempt to reconnect
// with a refusal, and calls it late for other errors.
func (f *faults) look() {
	f.mu.Lock()
	nc := f.nc
	f.mu.Unlock()
	if nc == nil {
		return
	}
	switch err := nc.LastError(); {
	case err == nil:
	case nc.IsConnected():
		f.refuse(err)
	default:
		f.failed(err)
	}
}

// refuse handles an error that the server reports on a connection that stays open. It keeps the first one that makes
// the connection useless, and reports whether err is such an error.
func (f *faults) refuse(err error) (fatal bool) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subjectRoot+`.`):
		err = fmt.Errorf("%w: the user needs permission to publish and subscribe on %s.>", err, subjectRoot)
	case errors.Is(err, nats.ErrMaxSubscriptionsExceeded):
		err = fmt.Errorf("%w: raise max_subscriptions in the configuration of the server, or of the account", err)
	default:
		return false
	}
	err = fmt.Errorf("the NATS server at %s: %w", f.where, err)
	f.mu.Lock()
	first := f.refused == nil
	if first {
		f.refused = err
	}
	f.mu.Unlock()
	if first && f.notify != nil {
		f.notify(err)
	}
	return true
}

// Fault returns the reason why messages do not arrive, if it is known: why the connection could not be made again, or
// what the server refuses to this user.
func (c *Conn) Fault() error {
	c.faults.look()
	f := c.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reconnect != nil {
		return fmt.Errorf("the connection to the NATS server at %s could not be made again: %w",
			f.where, explain(f.server, f.reconnect))
	}
	return f.refused
}

// Address returns the addresses of the server as they were given, without secrets.
func (c *Conn) Address() string { return c.faults.where }

// published turns err, the client's error about a message of size bytes, into the error of pubsub.Conn.
func (c *Conn) published(size int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: a message of %d bytes, and max_payload in the configuration of the NATS server is %d",
			err, size, c.nc.MaxPayload())
	case errors.Is(err, nats.ErrConnectionClosed):
		return pubsub.ErrClosed
	case errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrBadSubject):
		return err
	}
	return lost{err}
}

// lost is the error about a message that may be sent again.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// Is makes errors.Is(l, pubsub.ErrLost) true.
func (lost) Is(target error) bool { return target == pubsub.ErrLost }
