package reduction

import (
	"context"

	"jacobi/internal/base/pubsub"
)

// flushed is the part of a connection that has nothing to do where messages are delivered at once.
type flushed struct{ pubsub.Conn }

func (flushed) FlushWithContext(context.Context) error { return nil }
