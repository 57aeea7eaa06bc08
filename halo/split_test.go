package halo

import (
	"context"
	"testing"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/solver"
)

// timeline is the true time of a test, which passes only when the test says so, and as clocks are read.
type timeline struct {
	at   time.Time
	tick time.Duration // how long a reading takes
}

// clock returns a clock that is fast by offset.
func (l *timeline) clock(offset time.Duration) func() time.Time {
	return func() time.Time {
		t := l.at.Add(offset)
		l.at = l.at.Add(l.tick)
		return t
	}
}

// slowConn is a connection whose messages take time to hand over, and arrive when the test delivers them.
type slowConn struct {
	pubsub.Conn // nil: other methods must not be called
	line        *timeline
	publish     time.Duration
	sent        [][]byte
	handle      map[string]func(pubsub.Message)
}

func (c *slowConn) Publish(_ string, data []byte) error {
	c.line.at = c.line.at.Add(c.publish)
	c.sent = append(c.sent, append([]byte(nil), data...))
	return nil
}

func (c *slowConn) Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error) {
	c.handle[subject] = handle
	return noSubscription{}, nil
}

func (*slowConn) FlushWithContext(context.Context) error { return nil }
func (*slowConn) MaxPayload() int64                      { return 1 << 20 }
func (*slowConn) Status() pubsub.Status                  { return pubsub.Connected }

type noSubscription struct{}

func (noSubscription) SetPendingLimits(int, int) error { return nil }
func (noSubscription) Dropped() (int, error)           { return 0, nil }
func (noSubscription) Unsubscribe() error              { return nil }

// deliver hands the frames that c has sent to the link of the other end at a time.
func (c *slowConn) deliver(to *slowConn, subject string, at time.Time) {
	c.line.at, c.line.tick = at, 500*time.Microsecond
	for _, data := range c.sent {
		to.handle[subject](pubsub.Message{Data: data})
	}
	c.sent, c.line.tick = nil, 0
}

// TestSplit takes rows from end to end by a script, with one clock an hour fast and one three days slow, and checks the
// times that the two ends count.
func TestSplit(t *testing.T) {
	const (
		count         = 3
		publish       = 3 * time.Millisecond // of a frame; rows are two of them
		later         = 7 * time.Millisecond // how much later the second end sends
		there         = 20 * time.Millisecond
		back          = 26 * time.Millisecond
		opening, tick = 500 * time.Microsecond, 500 * time.Microsecond
		copying       = 2 * time.Millisecond
		sweeping      = 20 * time.Millisecond // after the rows were handed over
	)
	line := &timeline{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	mine := End{Run: testRun, Rank: 0, Side: solver.Bottom, Neighbour: 1, DType: solver.Float64, NX: 64,
		Send: solver.Stripe{Lo: 8, Hi: 10}, Recv: solver.Stripe{Lo: 10, Hi: 12}}
	var conns [2]*slowConn
	var meters [2]Meter
	var subjects [2]string
	var clocks [2]func() time.Time
	for i, end := range []End{mine, mine.Facing()} {
		conns[i] = &slowConn{line: line, publish: publish, handle: map[string]func(pubsub.Message){}}
		now := line.clock([2]time.Duration{time.Hour, -72 * time.Hour}[i])
		o := NATSOptions{Conn: conns[i], Timeout: time.Minute, MaxFrame: 600, now: now}
		l, err := NewNATS(t.Context(), end, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		clocks[i], meters[i], subjects[i] = now, newMeter(l, now), o.subject(end.Run, "halo", end.Rank, end.Side)
	}
	rows := make([]byte, mine.SendBytes())
	for n := range solver.ExchangeNumber(count) {
		begin := line.at
		for i, m := range meters {
			line.at = begin.Add(time.Duration(i) * later)
			m.CopiedEdge(copying)
			if err := m.Send(t.Context(), n, rows); err != nil {
				t.Fatal(err)
			}
			from := clocks[i]()
			m.Swept(from, from.Add(sweeping))
		}
		sent := begin.Add(2 * publish)
		conns[0].deliver(conns[1], subjects[1], sent.Add(there))
		conns[1].deliver(conns[0], subjects[0], sent.Add(later+back))
		for _, m := range meters {
			if _, err := m.(solver.RowLender).Take(t.Context(), n, len(rows)); err != nil {
				t.Fatal(err)
			}
			m.CopiedHalo(2 * copying)
		}
		line.at = line.at.Add(time.Second)
	}
	// The last frame comes a reading of the clock after the first one.
	for i, turn := range []time.Duration{later + back + tick, there - later + tick} {
		want := Traffic{Exchanges: count, Bytes: count * 2 * uint64(len(rows)),
			Sent: count * uint64(len(rows)), CopyOut: count * copying,
			Send: count * 2 * publish, CopyIn: count * 2 * copying, Travel: count * (2*publish + turn + opening),
			Hidden: count * min(sweeping, turn+opening),
			Split:  Split{Exchanges: count, Frame: count * 2 * publish, Unframe: count * opening, Turn: count * turn}}
		if got := meters[i].Traffic(); got != want {
			t.Errorf("end %d:\ngot  %+v\nwant %+v", i, got, want)
		}
	}
	a, b := meters[0].Traffic().Split.Turn/count, meters[1].Traffic().Split.Turn/count
	if wire, late := (a+b)/2, (a-b)/2; wire != (there+back)/2+tick || late != later+(back-there)/2 {
		t.Errorf("%v on the wire, the neighbour %v late", wire, late)
	}
}

// TestSplitLeavesOut checks exchanges with a time that is never known, and times that come late or again.
func TestSplitLeavesOut(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	var s stamps
	s.posted(4, at(10))
	s.arrived(4, at(11), at(12)) // a broken socket has not taken all rows
	s.arrived(5, at(19), at(20)) // the neighbour is ahead
	s.posted(5, at(30))
	s.sent(5, at(32))
	s.posted(8, at(40)) // in the place of exchange 4
	s.sent(4, at(41))
	want := Split{Exchanges: 1, Frame: 2 * time.Millisecond, Unframe: time.Millisecond, Turn: -13 * time.Millisecond}
	if got := s.split(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
