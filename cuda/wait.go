package cuda

import (
	"context"
	"fmt"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/awake"
)

// TimeoutError says that a pass did not end in time: the device, or a neighbour that it waits for, hangs.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the GPU did not finish a pass within %v: it, or a neighbour whose rows it waits for, hangs",
		e.After)
}

// Timeout reports that this is a timeout, as of net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// How await looks at an event: without pause for a pass of usual length, then with pauses that cost no core. A pause
// is longer than asked for, by up to a millisecond, in which the device may run out of work.
const (
	spinTime = 20 * time.Millisecond
	napTime  = 50 * time.Microsecond
)

// await waits for an event. The device may itself wait for a neighbour that is gone, so the wait ends with ctx, and
// with a *TimeoutError when nothing came within the timeout.
func (b *Backend) await(ctx context.Context, e *driver.Event) error {
	start := time.Now()
	var limit awake.Limit // from the first nap on
	for {
		if done, err := e.Done(); done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch waited := time.Since(start); {
		case waited <= spinTime:
		case limit == awake.Limit{}:
			limit = awake.Of(ctx).Limit(b.options.Timeout)
		case b.options.Timeout > 0 && limit.Left() <= 0:
			return &TimeoutError{After: b.options.Timeout}
		default:
			time.Sleep(napTime)
		}
	}
}

// awaitAll waits for all that a stream holds, no longer than for a pass.
func (b *Backend) awaitAll(ctx context.Context, s *driver.Stream) error {
	if err := b.emptied.Record(s); err != nil {
		return err
	}
	return b.await(ctx, b.emptied)
}
