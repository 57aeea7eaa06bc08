package rank

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"jacobi/internal/awake"
	"jacobi/internal/examine"
)

// rounds is the number of measurements of a round trip; the shortest counts.
const rounds = 8

// measure measures the round trip to the NATS server and compares the clocks of the nodes.
func (j *joined) measure(ctx context.Context, n *examine.Node) error {
	ctx, cancel := awake.WithTimeout(ctx, j.Config.Halo.Timeout)
	defer cancel()
	best := time.Duration(-1)
	for range rounds {
		start := time.Now()
		if err := j.team.Conn().FlushWithContext(ctx); err != nil {
			return fmt.Errorf("round trip to the NATS server: %w", err)
		}
		if took := time.Since(start); best < 0 || took < best {
			best = took
		}
	}
	n.NATSRoundTrip = best.Seconds()
	if j.id.Rank > 0 {
		if j.id.LocalRank > 0 {
			return nil
		}
		ahead, bound, err := j.compareClock(ctx, wallClock)
		n.Clock = &examine.Clock{Ahead: ahead.Seconds(), Error: bound.Seconds()}
		return err
	}
	for _, m := range j.team.Members()[1:] {
		if m.LocalRank > 0 {
			continue
		}
		if err := j.tellTime(ctx, m.Rank, wallClock); err != nil {
			return err
		}
	}
	return nil
}

// wallClock returns the time of day in nanoseconds since 1970.
func wallClock() int64 { return time.Now().UnixNano() }

// compareClock returns by how much now, a clock in nanoseconds, is ahead of rank 0's, and a bound on the error of that:
// half a round trip. Rank 0 calls tellTime meanwhile.
func (j *joined) compareClock(ctx context.Context, now func() int64) (ahead, bound time.Duration, err error) {
	for i := range rounds {
		start, here := time.Now(), now()
		if err := j.team.Send(ctx, 0, "time?", nil); err != nil {
			return 0, 0, err
		}
		data, err := j.team.Recv(ctx, 0, "time")
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

// tellTime answers the questions of rank to with now.
func (j *joined) tellTime(ctx context.Context, to int, now func() int64) error {
	for range rounds {
		if _, err := j.team.Recv(ctx, to, "time?"); err != nil {
			return err
		}
		answer := binary.LittleEndian.AppendUint64(nil, uint64(now()))
		if err := j.team.Send(ctx, to, "time", answer); err != nil {
			return err
		}
	}
	return nil
}
