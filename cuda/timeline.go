package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// Timeline times the work of a GPU: it places an event before and one after each piece of work in a stream. It never
// waits for the work. The times of the first passes are read once the same number of passes has followed, and those of
// the last passes at the end. The events of all others are used again unread. A nil Timeline times nothing.
type Timeline struct {
	dev     *device
	streams []*driver.Stream // by queue
	clock   *driver.Stream   // holds nothing but the events of anchors
	keep    int
	on      solver.OnWork

	unit    int // of the work that is launched now; -1: it is not timed
	free    []*driver.Event
	spans   []timing // not read, in the order of their launches
	first   int      // of spans
	anchor  *anchor
	tried   time.Time // when the newest anchor was wanted
	bound   time.Duration
	handed  [solver.WorkQueues]time.Time // the end of the newest work of each queue whose times were read
	failure error
}

// timing is work between two events.
type timing struct {
	work     solver.Work
	unit     int
	from, to *driver.Event
	anchor   *anchor
}

const (
	maxSpans      = 1 << 15 // with times not read yet; beyond them the oldest ones are
	firstEvents   = 512
	spansToShrink = 1024
)

// newTimeline times the work in streams. It keeps the first and the last keep units.
func (d *device) newTimeline(keep int, on solver.OnWork, streams ...*driver.Stream) (*Timeline, error) {
	t := &Timeline{dev: d, streams: streams, keep: keep, on: on, unit: -1}
	d.onClose(t.close)
	_, highest, err := d.context.Priorities()
	if err != nil {
		return nil, err
	}
	if t.clock, err = d.context.NewStream(highest); err != nil {
		return nil, err
	}
	d.onClose(t.clock.Close)
	for range firstEvents {
		e, err := d.context.NewEvent(true)
		if err != nil {
			return nil, err
		}
		t.free = append(t.free, e)
	}
	d.times = t
	return t, nil
}

// Timeline times the work of the GPU from the first Begin on, and hands it to on: of the units the first and the last
// keep ones. Work of queue 0 is in the stream of edges and halos, that of queue 1 in the stream of the interior.
func (b *Backend) Timeline(keep int, on solver.OnWork) (*Timeline, error) {
	return b.dev.newTimeline(keep, on, b.dev.fast, b.dev.slow)
}

// Timeline is Backend.Timeline. All work is in queue 0.
func (v *Levels) Timeline(keep int, on solver.OnWork) (*Timeline, error) {
	return v.dev.newTimeline(keep, on, v.stream)
}

// Begin says to which unit the work belongs that is launched from now on. Units never fall; -1 stands for work that is
// not timed. Since the newest unit may turn out to have no pass, one more than the last keep units stay.
func (t *Timeline) Begin(unit int) {
	if t.failure != nil {
		return
	}
	t.unit = unit
	if unit >= 0 && time.Since(t.tried) >= anchorEvery {
		t.check(t.setAnchor())
	}
	for t.first < len(t.spans) && t.spans[t.first].unit+t.keep < unit {
		s := t.spans[t.first]
		if s.unit < t.keep {
			if done, err := s.to.Done(); err != nil || !done {
				t.check(err)
				return
			}
			t.check(t.hand(s))
		}
		t.drop()
	}
}

// End waits for the GPU and hands over the work whose times were not read yet. It returns the bound on the error of the
// clock, and the error that ended the timing, if one did.
func (t *Timeline) End(ctx context.Context) (time.Duration, error) {
	t.unit = -1
	for _, s := range t.streams {
		t.check(t.dev.awaitAll(ctx, s))
	}
	for t.failure == nil && t.first < len(t.spans) {
		t.check(t.hand(t.spans[t.first]))
		t.drop()
	}
	if t.failure != nil {
		return 0, fmt.Errorf("time the work of the GPU: %w", t.failure)
	}
	return t.bound, nil
}

// check ends the timing after an error. The run goes on: what it needs of the GPU has errors of its own.
func (t *Timeline) check(err error) {
	if err != nil && t.failure == nil {
		t.failure, t.unit = err, -1
	}
}

// begin places the event before work in a stream. The mark's end places the one after it.
func (t *Timeline) begin(s *driver.Stream, w solver.Work) mark {
	if t == nil || t.unit < 0 || t.anchor == nil || !t.room() {
		return mark{}
	}
	w.Queue = slices.Index(t.streams, s)
	from, err := t.event()
	if err == nil {
		err = from.Record(s)
	}
	if err != nil {
		t.check(err)
		return mark{}
	}
	return mark{t, s, from, w}
}

// mark is the beginning of work. The zero mark stands for work that is not timed.
type mark struct {
	times *Timeline
	to    *driver.Stream
	from  *driver.Event
	work  solver.Work
}

// end places the event after the work.
func (m mark) end() {
	t := m.times
	if t == nil || t.failure != nil {
		return
	}
	to, err := t.event()
	if err == nil {
		err = to.Record(m.to)
	}
	t.check(err)
	t.anchor.spans++
	t.spans = append(t.spans, timing{m.work, t.unit, m.from, to, t.anchor})
}

// room reports whether there is room for one more span. It hands over the oldest work if need be and if that is done.
func (t *Timeline) room() bool {
	if len(t.spans)-t.first < maxSpans {
		return true
	}
	s := t.spans[t.first]
	done, err := s.to.Done()
	if err == nil && done {
		err = t.hand(s)
		t.drop()
	}
	t.check(err)
	return done && err == nil
}

// event returns an event that is not in use.
func (t *Timeline) event() (*driver.Event, error) {
	if n := len(t.free); n > 0 {
		e := t.free[n-1]
		t.free = t.free[:n-1]
		return e, nil
	}
	return t.dev.context.NewEvent(true)
}

// hand reads the times of work that is done and hands it over. The work of a queue does not overlap, whatever the
// errors of two anchors are.
func (t *Timeline) hand(s timing) error {
	after, err := driver.Elapsed(s.anchor.event, s.from)
	if err != nil {
		return err
	}
	took, err := driver.Elapsed(s.from, s.to)
	if err != nil {
		return err
	}
	start := s.anchor.at.Add(after)
	if end := t.handed[s.work.Queue]; start.Before(end) {
		start = end
	}
	t.handed[s.work.Queue] = start.Add(took)
	t.on(s.work, s.unit, start, took)
	return nil
}

// drop removes the oldest span. Its events are used again.
func (t *Timeline) drop() {
	s := t.spans[t.first]
	t.free = append(t.free, s.from, s.to)
	if s.anchor.spans--; s.anchor.spans == 0 && s.anchor != t.anchor {
		t.free = append(t.free, s.anchor.event)
	}
	t.first++
	if t.first >= spansToShrink && t.first >= len(t.spans)/2 {
		t.spans = t.spans[:copy(t.spans, t.spans[t.first:])]
		t.first = 0
	}
}

// close frees the events.
func (t *Timeline) close() error {
	var errs []error
	for t.first < len(t.spans) {
		t.drop()
	}
	if t.anchor != nil {
		t.free = append(t.free, t.anchor.event)
	}
	for _, e := range t.free {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

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
