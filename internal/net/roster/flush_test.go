package roster

import (
	"context"
	"errors"
	"testing"
	"time"
)

// mute is a connection whose server never answers.
type mute struct{ Conn }

func (mute) FlushWithContext(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A flush that is cut short names the cause, not "context canceled".
func TestFlushNamesTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nats: maximum subscriptions exceeded"))
	const want = "no answer from the NATS server: nats: maximum subscriptions exceeded"
	if err := flush(ctx, mute{}, time.Minute); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
