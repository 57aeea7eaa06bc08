package roster

import (
	"context"
	"testing"
	"time"

	"jacobi/internal/net/roster/rostertest"
)

// A rank finds by how much its clock is ahead of rank 0's, within the error that it states.
func TestCompareClock(t *testing.T) {
	comms := joined(t, plain(rostertest.Start(t, 0)), 2)
	base := time.Now()
	here := func() int64 { return int64(time.Since(base)) }
	for _, shift := range []time.Duration{0, 5 * time.Hour, -time.Minute} {
		together(t, comms, func(ctx context.Context, comm *Comm) error {
			if comm.Self().Rank == 0 {
				return comm.TellTime(ctx, 1, here)
			}
			ahead, bound, err := comm.CompareClock(ctx, func() int64 { return here() + int64(shift) })
			if off := ahead - shift; bound <= 0 || off < -bound || off > bound {
				t.Errorf("a clock %v ahead: %v with an error of at most %v", shift, ahead, bound)
			}
			return err
		})
	}
}
