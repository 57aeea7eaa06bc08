package trace

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock converts times of this process to those of CLOCK_MONOTONIC, which all processes of a node share.
type clock struct {
	base time.Time
	mono int64 // at base, in nanoseconds
}

// newClock compares the two clocks. It takes the closest of several comparisons, since the process may be interrupted.
func newClock() (c clock) {
	const attempts = 16
	closest := int64(-1)
	for range attempts {
		before := monotonic()
		base := time.Now()
		after := monotonic()
		if d := after - before; closest < 0 || d < closest {
			closest, c = d, clock{base, before + d/2}
		}
	}
	return c
}

// monotonic reads CLOCK_MONOTONIC. It cannot fail: Linux always has that clock.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// at returns t, which time.Now has returned, in nanoseconds.
func (c clock) at(t time.Time) int64 { return c.mono + int64(t.Sub(c.base)) }

// Reading is one comparison of a node's clock with that of rank 0, in nanoseconds.
type Reading struct {
	At    int64 `json:"-"`        // by the node's clock
	Ahead int64 `json:"ahead_ns"` // the node's clock less that of rank 0
	Error int64 `json:"error_ns"` // bound on the error of Ahead
}

// Clock relates the clock of a node to that of rank 0, by readings before and after the sweeps. The zero Clock is that
// of ranks under the same kernel as rank 0.
type Clock struct {
	Before Reading `json:"before"`
	After  Reading `json:"after"`
}

// Drifts reports whether the readings differ by more than their errors.
func (c Clock) Drifts() bool {
	d := c.After.Ahead - c.Before.Ahead
	return max(d, -d) > c.Before.Error+c.After.Error && c.After.At > c.Before.At
}

// there returns a time by the node's clock as one by that of rank 0. It keeps the order of times. If the clocks do not
// drift, it keeps durations, too.
func (c Clock) there(at int64) int64 {
	switch {
	case c.Drifts():
		share := float64(at-c.Before.At) / float64(c.After.At-c.Before.At)
		return at - c.Before.Ahead - int64(share*float64(c.After.Ahead-c.Before.Ahead))
	case c.After.Error < c.Before.Error:
		return at - c.After.Ahead
	}
	return at - c.Before.Ahead
}
