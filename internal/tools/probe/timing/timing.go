// Package timing measures how long work on the CPU takes.
package timing

import (
	"context"
	"time"
)

// Fastest does the work tries times and returns the shortest time, in seconds. One run before them, which touches
// memory for the first time, does not count. The error is the cause of the end of ctx.
func Fastest(ctx context.Context, tries int, work func()) (float64, error) {
	best := -1.0
	for try := range tries + 1 {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		begin := time.Now()
		work()
		if took := time.Since(begin).Seconds(); try > 0 && (best < 0 || took < best) {
			best = took
		}
	}
	return best, nil
}
