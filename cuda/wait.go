package cuda

import (
	"context"
	"fmt"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/base/awake"
)

// TimeoutError reports that a pass did not end in time: the device hangs, or a neighbour that it waits for.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the GPU did not finish a pass within %v: it, or a neighbour whose rows it waits for, hangs",
		e.After)
}

// Timeout returns true, as for a net.Error that is a timeout.
func (e *TimeoutError) Timeout() bool { return true }

// await polls an event without pause for the length of a usual pass, and then with pauses, which leave the core free. A
// pause may last up to a millisecond longer than asked for, in which the device may run out of work.
const (
	spinTime = 20 * time.Millisecond
	napTime  = 50 * time.Microsecond
)

// await waits for an event. The device may itself wait for a neighbour that is gone, so the wait ends with ctx, and
// with a *TimeoutError after the timeout.
func (d *device) await(ctx context.Context, e *driver.Event) error {
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
			limit = awake.Of(ctx).Limit(d.timeout)
		case d.timeout > 0 && limit.Left() <= 0:
			return &TimeoutError{After: d.timeout}
		default:
			time.Sleep(napTime)
		}
	}
}

// awaitAll waits for all work in a stream, for at most the timeout of a pass.
func (d *device) awaitAll(ctx context.Context, s *driver.Stream) error {
	if err := d.emptied.Record(s); err != nil {
		return err
	}
	return d.await(ctx, d.emptied)
}
