package roster

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// trips is the number of measurements of a round trip; the shortest counts.
const trips = 8

// CompareClock returns the lead of now, a clock in nanoseconds, over that of rank 0, and a bound on its error: half a
// round trip. Rank 0 calls TellTime meanwhile.
func (t *Comm) CompareClock(ctx context.Context, now func() int64) (ahead, bound time.Duration, err error) {
	for i := range trips {
		start, here := time.Now(), now()
		if err := t.Send(ctx, 0, "time?", nil); err != nil {
			return 0, 0, err
		}
		data, err := t.Recv(ctx, 0, "time")
		if err != nil {
			return 0, 0, err
		}
		half := time.Since(start) / 2
		if len(data) != 8 {
			return 0, 0, fmt.Errorf("time of rank 0: %d bytes, want 8", len(data))
		}
		if i == 0 || half < bound {
			ahead, bound = time.Duration(here-int64(binary.LittleEndian.Uint64(data)))+half, half
		}
	}
	return ahead, bound, nil
}

// TellTime answers the questions of rank to with now.
func (t *Comm) TellTime(ctx context.Context, to int, now func() int64) error {
	for range trips {
		if _, err := t.Recv(ctx, to, "time?"); err != nil {
			return err
		}
		answer := binary.LittleEndian.AppendUint64(nil, uint64(now()))
		if err := t.Send(ctx, to, "time", answer); err != nil {
			return err
		}
	}
	return nil
}

// RoundTrip returns the time of a question to the server and its answer, the shortest of several.
func (t *Comm) RoundTrip(ctx context.Context) (best time.Duration, err error) {
	for i := range trips {
		start := time.Now()
		if err := t.conn.FlushWithContext(ctx); err != nil {
			return 0, fmt.Errorf("round trip to the NATS server: %w", err)
		}
		if took := time.Since(start); i == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
