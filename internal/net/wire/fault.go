package wire

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
)

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

// published turns err, the client's error about a message of size bytes, into the error of pubsub.Publisher.
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
