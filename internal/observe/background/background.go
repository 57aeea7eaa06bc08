// Package background runs the tasks of an observer of a run one at a time while the sweeps go on.
package background

import (
	"context"
	"fmt"
	"time"
)

// Background runs tasks one at a time in the background.
type Background struct {
	ctx    context.Context
	cancel context.CancelFunc
	what   string     // for errors
	ended  chan error // has the outcome of the newest task; nil if no task is left to wait for
}

// New returns a Background whose tasks end with ctx. what names it in errors.
func New(ctx context.Context, what string) Background {
	ctx, cancel := context.WithCancel(ctx)
	return Background{ctx: ctx, cancel: cancel, what: what}
}

// Do starts a task. The one before has been waited for.
func (b *Background) Do(f func(ctx context.Context) error) {
	ended := make(chan error, 1)
	b.ended = ended
	go func() { ended <- f(b.ctx) }()
}

// Wait waits for the newest task and returns its error.
func (b *Background) Wait(ctx context.Context) error {
	if b.ended == nil {
		return nil
	}
	select {
	case err := <-b.ended:
		b.ended = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", b.what, context.Cause(ctx))
	}
}

// grace bounds how long Close waits for a write that cannot be interrupted.
const grace = 2 * time.Second

// Close gives up a task that is not done.
func (b *Background) Close() error {
	b.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = b.Wait(ctx) // the run has ended
	return nil
}
