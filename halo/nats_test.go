package halo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"jacobi/solver"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// impatient are options for tests in which rows get lost.
func impatient() NATSOptions {
	return NATSOptions{Timeout: long, AskAfter: time.Millisecond, AskMost: 2 * time.Millisecond}
}

// faulty opens a link with faults on both ends.
func faulty(t *testing.T, s *testServer, e End, o NATSOptions, f Faults) (a, b *NATSLink) {
	t.Helper()
	open := func(e End, seed uint64) *NATSLink {
		g, o := f, o
		g.Seed = seed
		o.Conn = s.connect(t)
		p := g.Publisher(o.Conn)
		o.Publisher = p
		l, err := NewNATS(t.Context(), e, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(l.Close(), p.Close()); err != nil {
				t.Error(err)
			}
		})
		return l
	}
	return open(e, 2*f.Seed), open(e.Facing(), 2*f.Seed+1)
}

func TestNATSFaults(t *testing.T) {
	s := serve(t, &server.Options{})
	for _, c := range []struct {
		name   string
		faults Faults
		hit    func(NATSStats) bool // the faults did something
	}{
		{"drop", Faults{Drop: 0.3}, func(n NATSStats) bool { return n.Asked > 0 && n.Resent > 0 }},
		{"duplicate", Faults{Duplicate: 0.5}, func(n NATSStats) bool { return n.Duplicates > 0 }},
		{"reorder", Faults{Reorder: 0.5}, func(n NATSStats) bool { return n.Asked > 0 }},
		{"delay", Faults{Delay: 0.5, MaxDelay: 3 * time.Millisecond}, func(n NATSStats) bool { return n.Asked > 0 }},
		{"corrupt", Faults{Corrupt: 0.3}, func(n NATSStats) bool { return n.Refused > 0 && n.Resent > 0 }},
		{"cut", Faults{CutFrom: 10, CutCount: 30}, func(n NATSStats) bool { return n.Resent > 0 }},
		{"all", Faults{Drop: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1, Delay: 0.2,
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
					f := c.faults
					f.Seed = seed
					a, b := faulty(t, s, e, o, f)
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

// TestNATSRestart stops the server in the middle of an exchange, at a exchange of one rank, and starts it again.
func TestNATSRestart(t *testing.T) {
	s := serve(t, &server.Options{})
	e := freshEnd(1000, 4)
	a, b, err := openNATS(t, e, e.Facing(), impatient(), s.connect(t), s.connect(t))
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, a, b)
	both(t, a, b, e, 0, 100, func(rank int, exchange solver.ExchangeNumber) {
		if rank == e.Rank && exchange%30 == 10 {
			s.stop()
			s.start(t)
		}
	})
}

// TestNATSDisconnect breaks the connection of one rank again and again.
func TestNATSDisconnect(t *testing.T) {
	s := serve(t, &server.Options{})
	e := freshEnd(1000, 4)
	ca, cb := s.connect(t), s.connect(t)
	a, b, err := openNATS(t, e, e.Facing(), impatient(), ca, cb)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, a, b)
	both(t, a, b, e, 0, 60, func(rank int, exchange solver.ExchangeNumber) {
		if rank == e.Rank && exchange%10 == 5 {
			if err := cb.ForceReconnect(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestNATSBusySender lets a receiver ask while the sender, which lost its frame, does nothing.
func TestNATSBusySender(t *testing.T) {
	s := serve(t, &server.Options{})
	e := freshEnd(100, 2)
	a, b := faulty(t, s, e, impatient(), Faults{CutFrom: 0, CutCount: 1})
	out, in := make([]byte, e.SendBytes()), make([]byte, e.SendBytes())
	fill(out, e.Rank, e.Send, e.NX, 0)
	if err := a.Send(t.Context(), 0, out); err != nil {
		t.Fatal(err)
	}
	if err := b.Recv(t.Context(), 0, in); err != nil {
		t.Fatal(err)
	}
	if err := verify(in, e.Rank, e.Send, e.NX, 0); err != nil {
		t.Error(err)
	}
	if n := a.Stats().Resent; n == 0 {
		t.Error("nothing was sent again")
	}
}

// TestNATSAsksForPartsMissing drops one frame of many; no other is sent again.
func TestNATSAsksForPartsMissing(t *testing.T) {
	s := serve(t, &server.Options{})
	e := freshEnd(100, 2)
	o := impatient()
	o.MaxFrame = headerSize + 16 // 100 parts
	o.AskAfter = 200 * time.Millisecond
	a, b := faulty(t, s, e, o, Faults{CutFrom: 42, CutCount: 1})
	if err := a.Send(t.Context(), 0, make([]byte, e.SendBytes())); err != nil {
		t.Fatal(err)
	}
	if err := b.Recv(t.Context(), 0, make([]byte, e.SendBytes())); err != nil {
		t.Fatal(err)
	}
	if n, asked := a.Stats().Resent, b.Stats().Asked; n == 0 || n > asked {
		t.Errorf("%d frames were sent again for %d requests, want at most one each", n, asked)
	}
}

func TestNATSTimeoutDetail(t *testing.T) {
	s := serve(t, &server.Options{})
	for _, c := range []struct {
		name   string
		faults Faults
		want   string
	}{
		{"slow neighbour", Faults{}, "times that it has not come so far"},
		{"silent neighbour", Faults{CutCount: -1}, "rank 2 did not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := impatient()
			o.Timeout = 100 * time.Millisecond
			_, b := faulty(t, s, freshEnd(8, 8), o, c.faults)
			err := b.Recv(t.Context(), 17, make([]byte, 8*8*8))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestNATSStrayFrames sends a link what is not its own: it is refused, counted, logged once, and told when the rows do
// not come.
func TestNATSStrayFrames(t *testing.T) {
	s := serve(t, &server.Options{})
	e := freshEnd(8, 8)
	core, logs := observer.New(zap.WarnLevel)
	o := impatient()
	o.Timeout = 300 * time.Millisecond
	o.Conn, o.Log = s.connect(t), zap.New(core)
	l, err := NewNATS(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, l)
	there := e.Facing()
	payload := make([]byte, there.SendBytes())
	stray := func(change func(*frame)) []byte {
		f := there.frame(kindRows, 0)
		change(&f)
		msg := make([]byte, headerSize+len(payload))
		f.put(msg, payload)
		return msg
	}
	damaged := stray(func(*frame) {})
	damaged[100] ^= 4
	version := stray(func(*frame) {})
	version[4] = 9
	messages := [][]byte{
		[]byte("hello"),
		damaged,
		version,
		stray(func(f *frame) { f.run = testRun }),
		stray(func(f *frame) { f.sender = 7 }),
		stray(func(f *frame) { f.receiver = 7 }),
		stray(func(f *frame) { f.side = e.Side }),
		stray(func(f *frame) { f.kind = 9 }),
		stray(func(f *frame) { f.kind = kindAsk }),
		stray(func(f *frame) { f.part, f.parts = 1, 1 }),
		stray(func(f *frame) { f.parts = 2 }),
	}
	for _, m := range messages {
		if err := o.Conn.Publish(o.subject(e.Run, "halo", e.Rank, e.Side), m); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := o.Conn.FlushWithContext(ctx); err != nil { // its answer comes after the messages
		t.Fatal(err)
	}
	err = l.Recv(t.Context(), 0, make([]byte, e.RecvBytes()))
	if want := fmt.Sprintf("%d frames were refused, the last one: bytes of a part 512, want 256",
		len(messages)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if got := logs.Len(); got != 1 {
		t.Errorf("%d log entries, want 1", got)
	}
	// The link still works.
	if err := o.Conn.Publish(o.subject(e.Run, "halo", e.Rank, e.Side), stray(func(*frame) {})); err != nil {
		t.Fatal(err)
	}
	if err := l.Recv(t.Context(), 0, make([]byte, e.RecvBytes())); err != nil {
		t.Error(err)
	}
}

func TestNATSConnectionClosed(t *testing.T) {
	s := serve(t, &server.Options{})
	e := freshEnd(8, 8)
	o := impatient()
	o.Conn = s.connect(t)
	l, err := NewNATS(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, l)
	o.Conn.(*nats.Conn).Close()
	if err := l.Recv(t.Context(), 0, make([]byte, e.RecvBytes())); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Recv: %v, want %v", err, nats.ErrConnectionClosed)
	}
	if err := l.Send(t.Context(), 0, make([]byte, e.SendBytes())); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Send: %v, want %v", err, nats.ErrConnectionClosed)
	}
}

func TestNATSRefusesTinyFrames(t *testing.T) {
	s := serve(t, &server.Options{MaxPayload: headerSize})
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), NATSOptions{Conn: s.connect(t), Timeout: long}); err == nil ||
		!strings.Contains(err.Error(), "a header alone takes 68") {
		t.Errorf("got %v", err)
	}
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), NATSOptions{Timeout: long}); err == nil {
		t.Error("a link without a connection was opened")
	}
}

// TestNATSOwnConnection: a link closes the connection that it has for itself, also when it cannot be opened.
func TestNATSOwnConnection(t *testing.T) {
	s := serve(t, &server.Options{})
	own, shared := s.connect(t), s.connect(t)
	o := NATSOptions{Conn: shared, Timeout: long, Dial: func(context.Context) (OwnConn, error) { return own, nil }}
	l, err := NewNATS(t.Context(), freshEnd(8, 8), o)
	if err != nil {
		t.Fatal(err)
	}
	if n := own.NumSubscriptions(); n != 2 {
		t.Errorf("%d subscriptions on the link's own connection, want 2", n)
	}
	if err := l.Close(); err != nil || !own.IsClosed() || shared.IsClosed() {
		t.Errorf("after Close (%v): own connection closed %v, the other one %v; want true and false", err,
			own.IsClosed(), shared.IsClosed())
	}

	own, o.MaxFrame = s.connect(t), headerSize
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), o); err == nil || !own.IsClosed() {
		t.Errorf("frames without room for rows: %v; own connection closed %v, want true", err, own.IsClosed())
	}

	refused := errors.New("connection refused")
	o.Dial = func(context.Context) (OwnConn, error) { return nil, refused }
	if _, err := NewNATS(t.Context(), freshEnd(8, 8), o); !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
}

// TestLinkFaults holds the wrapper of a Link: it delays, cuts, and nothing else.
func TestLinkFaults(t *testing.T) {
	e := freshEnd(8, 1)
	a, b, err := NewMemory(e, e.Facing(), long)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, a, b)
	cut := Faults{Delay: 1, MaxDelay: time.Millisecond, CutFrom: 10, CutCount: -1}
	both(t, cut.Link(a), b, e, 0, 10, nil)
	if err := cut.Link(a).Send(t.Context(), 10, make([]byte, e.SendBytes())); !errors.Is(err, ErrCut) {
		t.Errorf("got %v, want %v", err, ErrCut)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	slow := Faults{Delay: 1, MaxDelay: time.Hour}
	if err := slow.Link(a).Recv(ctx, 10, make([]byte, e.RecvBytes())); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// sink keeps what is published.
type sink struct {
	mu   sync.Mutex
	sent []string
}

func (s *sink) Publish(_ string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, string(data))
	return nil
}

func TestFaultsAreSeeded(t *testing.T) {
	harm := func(seed uint64) string {
		var s sink
		p := Faults{Seed: seed, Drop: 0.2, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.2, CutFrom: 50,
			CutCount: 10}.Publisher(&s)
		for i := range 100 {
			if err := p.Publish("x", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(s.sent, " ")
	}
	first := harm(1)
	if again := harm(1); again != first {
		t.Errorf("one seed, two outcomes: %s and %s", first, again)
	}
	if harm(2) == first {
		t.Error("two seeds, one outcome")
	}
}

func BenchmarkExchange(b *testing.B) {
	s := serve(b, &server.Options{MaxPayload: 8 << 20})
	for _, tr := range []transport{
		{TransportMemory, func(_ testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return NewMemory(a, b, timeout)
		}},
		{TransportShared, openShared},
		{TransportNATS, func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return openNATS(t, a, b, NATSOptions{Timeout: timeout}, s.connect(t), s.connect(t))
		}},
	} {
		for _, values := range []int{1, 8 << 10, 128 << 10} {
			b.Run(fmt.Sprintf("%s/%d", tr.name, 8*values), func(b *testing.B) {
				e := freshEnd(values, 1)
				x, y := tr.must(b, e, long)
				n := solver.ExchangeNumber(b.N)
				exchange := func(l Link) {
					rows := make([]byte, 8*values)
					for i := range n {
						if err := errors.Join(l.Send(b.Context(), i, rows), l.Recv(b.Context(), i, rows)); err != nil {
							b.Error(err)
							return
						}
					}
				}
				b.SetBytes(int64(16 * values))
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				wg.Go(func() { exchange(y) })
				exchange(x)
				wg.Wait()
			})
		}
	}
}

// TestNATSSlowConsumer floods a rank that takes nothing: its client drops frames, the memory stays bounded, and what
// was dropped is asked for again.
func TestNATSSlowConsumer(t *testing.T) {
	s := serve(t, &server.Options{})
	e := freshEnd(1000, 4) // exchanges of 32 KB
	o := impatient()
	o.MaxFrame, o.Pending = 1000, 4000
	a, b := faulty(t, s, e, o, Faults{})
	rows := make([]byte, e.SendBytes())
	b.in.mu.Lock() // the first frame waits here, four more may queue
	for exchange := range solver.ExchangeNumber(2) {
		fill(rows, e.Rank, e.Send, e.NX, exchange)
		if err := a.Send(t.Context(), exchange, rows); err != nil {
			t.Fatal(err)
		}
	}
	for b.Stats().Dropped == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	b.in.mu.Unlock()
	got := make([]byte, len(rows))
	for exchange := range solver.ExchangeNumber(2) {
		fill(rows, e.Rank, e.Send, e.NX, exchange)
		if err := b.Recv(t.Context(), exchange, got); err != nil || !bytes.Equal(got, rows) {
			t.Fatalf("exchange %d: %v, or other rows", exchange, err)
		}
	}
	parts := (e.RecvBytes() + 1000 - headerSize - 1) / (1000 - headerSize)
	// of b: two exchanges kept, two received, two queues
	most := int64(2*(e.RecvBytes()+parts*headerSize) + 2*e.SendBytes() + 2*4000)
	if n := b.Stats(); n.Asked == 0 || n.Dropped == 0 || n.MostBytes != most {
		t.Errorf("%+v, want frames dropped and asked for, and at most %d bytes", n, most)
	}
}
