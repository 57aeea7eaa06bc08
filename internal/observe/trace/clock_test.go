package trace

import (
	"testing"
	"time"
)

// Times of this process agree with the clock that all processes of the node share.
func TestClockIsThatOfTheNode(t *testing.T) {
	c := newClock()
	before := monotonic()
	at := c.at(time.Now())
	after := monotonic()
	const slack = int64(time.Millisecond) // for interruptions of newClock
	if at < before-slack || at > after+slack {
		t.Errorf("%d is not between %d and %d", at, before, after)
	}
}

// The reading with the smaller error counts, unless the readings differ by more than their errors. Then the clock is
// taken to drift evenly.
func TestClockOfAnotherNode(t *testing.T) {
	for name, c := range map[string]struct {
		clock  Clock
		at     int64
		want   int64
		drifts bool
	}{
		"rank 0":    {Clock{}, 7, 7, false},
		"before":    {Clock{Reading{100, 50, 5}, Reading{200, 60, 6}}, 150, 100, false},
		"after":     {Clock{Reading{100, 50, 7}, Reading{200, 60, 6}}, 150, 90, false},
		"drift":     {Clock{Reading{100, 50, 4}, Reading{200, 60, 5}}, 150, 95, true},
		"first":     {Clock{Reading{100, 50, 4}, Reading{200, 60, 5}}, 100, 50, true},
		"last":      {Clock{Reading{100, 50, 4}, Reading{200, 60, 5}}, 200, 140, true},
		"slower":    {Clock{Reading{100, -50, 4}, Reading{200, -60, 5}}, 150, 205, true},
		"same time": {Clock{Reading{100, 50, 4}, Reading{100, 60, 5}}, 150, 100, false},
	} {
		if got := c.clock.there(c.at); got != c.want || c.clock.Drifts() != c.drifts {
			t.Errorf("%s: %d, drifts %t; want %d, %t", name, got, c.clock.Drifts(), c.want, c.drifts)
		}
	}
}
