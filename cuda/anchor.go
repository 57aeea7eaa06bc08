package cuda

import (
	"time"

	"jacobi/cuda/driver"
)

// anchor is an event that passed at a known time of the host. Times near it are exact: the driver gives the distance of
// two events in float32.
type anchor struct {
	event *driver.Event
	at    time.Time
	spans int // that refer to it
}

const (
	anchorEvery = time.Second
	anchorTries = 8
	anchorLimit = 5 * time.Millisecond  // of a try during the sweeps
	firstLimit  = 20 * anchorLimit      // of a try before them
	closeAnchor = 15 * time.Microsecond // a try that takes no longer is good enough
)

// setAnchor compares the clock of the GPU with that of the host. If the GPU does not answer at once, the older anchor
// stays.
func (t *Timeline) setAnchor() error {
	t.tried = time.Now()
	best := &anchor{}
	limit := anchorLimit
	if t.anchor == nil {
		limit = firstLimit
	}
	took := limit
	for range anchorTries {
		e, err := t.event()
		if err != nil {
			return err
		}
		begin := time.Now()
		end, err := t.pass(e, begin, limit)
		if err != nil {
			return err
		}
		if d := end.Sub(begin); d < took {
			e, best.event = best.event, e
			best.at, took = begin.Add(d/2), d
		}
		if e != nil {
			t.free = append(t.free, e)
		}
		if took <= closeAnchor {
			break
		}
	}
	if best.event == nil {
		return nil
	}
	if old := t.anchor; old != nil && old.spans == 0 {
		t.free = append(t.free, old.event)
	}
	t.anchor, t.bound = best, max(t.bound, took/2)
	return nil
}

// pass places an event in the empty stream and returns when it was seen to have passed, or the limit of a try.
func (t *Timeline) pass(e *driver.Event, begin time.Time, limit time.Duration) (time.Time, error) {
	if err := e.Record(t.clock); err != nil {
		return begin, err
	}
	for {
		done, err := e.Done()
		now := time.Now()
		if err != nil || done || now.Sub(begin) >= limit {
			return now, err
		}
	}
}
