package rank

import (
	"context"
	"fmt"
	"time"
)

// beside does one thing after another beside the sweeps.
type beside struct {
	ctx    context.Context
	cancel context.CancelFunc
	what   string     // for errors
	ended  chan error // has the outcome of the newest thing; nil if there is none that was not waited for
}

// newBeside returns a beside whose things end with the run.
func (r *ready) newBeside(what string) beside {
	ctx, cancel := context.WithCancel(r.team.Context())
	return beside{ctx: ctx, cancel: cancel, what: what}
}

// do does the next thing, after the one before has been waited for.
func (b *beside) do(f func(ctx context.Context) error) {
	ended := make(chan error, 1)
	b.ended = ended
	go func() { ended <- f(b.ctx) }()
}

// wait waits for the newest thing and returns its error.
func (b *beside) wait(ctx context.Context) error {
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

// besideGrace bounds how long close waits for a write that cannot be interrupted.
const besideGrace = 2 * time.Second

// close gives up what is not done.
func (b *beside) close() error {
	b.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), besideGrace)
	defer cancel()
	_ = b.wait(ctx) // the run has ended
	return nil
}
