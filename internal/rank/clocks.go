package rank

import (
	"context"
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
		c, err := j.compareClock(ctx)
		n.Clock = c
		return err
	}
	for _, m := range j.team.Members()[1:] {
		if m.LocalRank > 0 {
			continue
		}
		if err := j.tellTime(ctx, m.Rank); err != nil {
			return err
		}
	}
	return nil
}

// compareClock asks rank 0 for the time. The error of an answer is at most half its round trip.
func (j *joined) compareClock(ctx context.Context) (*examine.Clock, error) {
	var best *examine.Clock
	for range rounds {
		start := time.Now()
		if err := j.team.Send(ctx, 0, "time?", nil); err != nil {
			return nil, err
		}
		data, err := j.team.Recv(ctx, 0, "time")
		if err != nil {
			return nil, err
		}
		half := time.Since(start) / 2
		var there time.Time
		if err := there.UnmarshalBinary(data); err != nil {
			return nil, fmt.Errorf("time of rank 0: %w", err)
		}
		if c := (examine.Clock{Ahead: start.Add(half).Sub(there).Seconds(), Error: half.Seconds()}); best == nil ||
			c.Error < best.Error {
			best = &c
		}
	}
	return best, nil
}

// tellTime answers the questions of rank to.
func (j *joined) tellTime(ctx context.Context, to int) error {
	for range rounds {
		if _, err := j.team.Recv(ctx, to, "time?"); err != nil {
			return err
		}
		now, err := time.Now().MarshalBinary()
		if err != nil {
			return err
		}
		if err := j.team.Send(ctx, to, "time", now); err != nil {
			return err
		}
	}
	return nil
}
