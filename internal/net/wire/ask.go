package wire

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/base/pubsub"
)

// Asker is the part of a connection that Ask needs.
type Asker interface {
	RequestWithContext(ctx context.Context, subject string, data []byte) (pubsub.Message, error)
}

// Ask sends a request to whoever listens on subject, and repeats it with pauses of pace until accept has taken an
// answer. An answer for which accept returns false counts as none.
//
// The request arrives at least once, and may arrive several times, one of them after Ask has returned: repeating it
// must not change what it does. Ask needs no memory beyond one answer. It waits for the listener, for the server and
// for the connection as long as ctx allows, and then returns the cause of ctx. It fails before only if the connection
// is closed or the request is too large for the server.
func Ask(ctx context.Context, conn Asker, subject string, data []byte, pace Pace,
	accept func(pubsub.Message) bool) error {
	for patience := pace.First; ; patience = pace.next(patience) {
		once, cancel := context.WithTimeout(ctx, patience)
		m, err := conn.RequestWithContext(once, subject, data)
		cancel()
		switch {
		case err == nil && accept(m):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, pubsub.ErrClosed), errors.Is(err, nats.ErrMaxPayload):
			return err
		}
		select { // nobody listens yet, or the client reconnects
		case <-time.After(pace.First / 4):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
