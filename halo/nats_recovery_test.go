package halo_test

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

// impatient are options for tests in which rows get lost.
func impatient() NATSOptions {
	return NATSOptions{Timeout: long, AskAfter: time.Millisecond, MaxAskAfter: 2 * time.Millisecond}
}

// faulty opens a link with faults on both ends.
func faulty(t *testing.T, s testServer, e End, o NATSOptions, seed uint64,
	f rostertest.Faults) (a, b *FramedLink) {
	t.Helper()
	open := func(e End, seed uint64) *FramedLink {
		o, conn := o, rostertest.NewFaulty(s.connect(t), seed, f)
		o.Conn = conn
		l, err := NewNATS(t.Context(), e, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			conn.Settle()
		})
		return l
	}
	return open(e, 2*seed), open(e.Facing(), 2*seed+1)
}

func TestNATSFaults(t *testing.T) {
	s := serve(t, server.Options{})
	for _, c := range []struct {
		name   string
		faults rostertest.Faults
		hit    func(NATSStats) bool // says whether the faults had an effect
	}{
		{"drop", rostertest.Faults{Drop: 0.3}, func(n NATSStats) bool { return n.Asked > 0 && n.Resent > 0 }},
		{"duplicate", rostertest.Faults{Duplicate: 0.5}, func(n NATSStats) bool { return n.Duplicates > 0 }},
		{"reorder", rostertest.Faults{Reorder: 0.5}, func(n NATSStats) bool { return n.Asked > 0 }},
		{"delay", rostertest.Faults{Delay: 0.5, MaxDelay: 3 * time.Millisecond},
			func(n NATSStats) bool { return n.Asked > 0 }},
		{"corrupt", rostertest.Faults{Corrupt: 0.3}, func(n NATSStats) bool { return n.Refused > 0 && n.Resent > 0 }},
		{"cut", rostertest.Faults{CutFrom: 10, CutCount: 30}, func(n NATSStats) bool { return n.Resent > 0 }},
		{"all", rostertest.Faults{Drop: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1, Delay: 0.2,
			MaxDelay: 3 * time.Millisecond,
			CutFrom:  15, CutCount: 10}, func(n NATSStats) bool {
			return n.Asked > 0 && n.Duplicates > 0 &&
				n.Refused > 0
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sum NATSStats
			for seed := range uint64(8) {
				for _, maxFrame := range []int{0, 400} { // one part, five parts
					e := freshEnd(100, 2)
					o := impatient()
					o.MaxFrame = maxFrame
					a, b := faulty(t, s, e, o, seed, c.faults)
					both(t, a, b, e, 0, 15, nil)
					for _, n := range []NATSStats{a.Stats(), b.Stats()} {
						sum.Asked += n.Asked
						sum.Resent += n.Resent
						sum.Duplicates += n.Duplicates
						sum.Refused += n.Refused
					}
				}
			}
			if !c.hit(sum) {
				t.Errorf("the faults did nothing: %+v", sum)
			}
		})
	}
}

// TestNATSRestart restarts the server several times while rows are exchanged, and breaks the connection of one rank.
func TestNATSRestart(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(1000, 4)
	nc := s.dial(t)
	a, b, err := openNATS(t, e, e.Facing(), impatient(), s.connect(t), wire.Over(nc))
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, a, b)
	both(t, a, b, e, 0, 100, func(rank int, exchange solver.ExchangeNumber) {
		switch {
		case rank != e.Rank:
		case exchange%30 == 10:
			s.Restart()
		case exchange%10 == 5:
			if err := nc.ForceReconnect(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestNATSAsksForPartsMissing drops one frame of many and expects that no other is sent again. The sender makes no call
// meanwhile.
func TestNATSAsksForPartsMissing(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(100, 2)
	o := impatient()
	o.MaxFrame = HeaderSize + 16 // 100 parts
	o.AskAfter = 200 * time.Millisecond
	a, b := faulty(t, s, e, o, 0, rostertest.Faults{CutFrom: 42, CutCount: 1})
	rows := make([]byte, e.SendBytes())
	fillRows(rows, e.Rank, e.Send, e.NX, 0)
	if err := a.Send(t.Context(), 0, rows); err != nil {
		t.Fatal(err)
	}
	clear(rows)
	if err := b.Recv(t.Context(), 0, rows); err != nil {
		t.Fatal(err)
	}
	if err := verifyRows(rows, e.Rank, e.Send, e.NX, 0); err != nil {
		t.Error(err)
	}
	if n, asked := a.Stats().Resent, b.Stats().Asked; n == 0 || n > asked {
		t.Errorf("%d frames were sent again for %d requests, want at most one each", n, asked)
	}
}

// TestNATSSlowConsumer floods a rank that handles no frames. Its client must drop frames within the bound on memory,
// and the rank must ask for them again.
func TestNATSSlowConsumer(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(1000, 4) // exchanges of 32 KB
	o := impatient()
	o.MaxFrame, o.Pending = 1000, 4000
	a, b := faulty(t, s, e, o, 0, rostertest.Faults{})
	rows := make([]byte, e.SendBytes())
	release := HoldFrames(b) // the first frame waits for it, four more may queue
	for exchange := range solver.ExchangeNumber(2) {
		fillRows(rows, e.Rank, e.Send, e.NX, exchange)
		if err := a.Send(t.Context(), exchange, rows); err != nil {
			t.Fatal(err)
		}
	}
	for b.Stats().Dropped == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	release()
	got := make([]byte, len(rows))
	for exchange := range solver.ExchangeNumber(2) {
		fillRows(rows, e.Rank, e.Send, e.NX, exchange)
		if err := b.Recv(t.Context(), exchange, got); err != nil || !bytes.Equal(got, rows) {
			t.Fatalf("exchange %d: %v, or other rows", exchange, err)
		}
	}
	// two exchanges kept, two received, two queues
	bound := int64(2*(e.RecvBytes()) + 2*e.SendBytes() + 2*4000)
	if n := b.Stats(); n.Asked == 0 || n.Dropped == 0 || n.MostBytes != bound {
		t.Errorf("%+v, want frames dropped and asked for, and at most %d bytes", n, bound)
	}
}
