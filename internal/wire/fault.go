package wire

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"jacobi/configs"
)

// faults keeps what the server, or the way to it, has refused to a connection.
type faults struct {
	server configs.NATS
	where  string      // the server's addresses, without secrets
	tell   func(error) // gets the first refusal of a subject of ours; may be nil

	mu        sync.Mutex
	nc        *nats.Conn // nil while it is made for the first time
	reconnect error      // of the last attempt to connect again; nil while connected
	refused   error
}

// failed notes why an attempt to connect again has failed; nil: none has yet, or one has succeeded.
func (f *faults) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconnect = err
}

// look notes the client's last error. Of attempts to connect again in which the server answered, and refused, the
// client tells no handler; of other errors it tells one later.
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
		f.said(err)
	default:
		f.failed(err)
	}
}

// said takes an error that the server says of a connection that stays as it is. It reports whether it is one that ends
// what the connection is for.
func (f *faults) said(err error) (fatal bool) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+ours+`.`):
		err = fmt.Errorf("%w: the user needs permission to publish and subscribe on %s.>", err, ours)
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
	if first && f.tell != nil {
		f.tell(err)
	}
	return true
}

// Fault says what keeps messages from arriving, as far as is known: why the connection cannot be made again, or what
// the server refuses to this user.
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

// Address returns the addresses of the server, as they were given, without secrets.
func (c *Conn) Address() string { return c.faults.where }

// explainPublish names the server's limit to an error of a message of so many bytes.
func (c *Conn) explainPublish(size int, err error) error {
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%w: a message of %d bytes, and max_payload in the configuration of the NATS server is %d",
			err, size, c.nc.MaxPayload())
	}
	return err
}
