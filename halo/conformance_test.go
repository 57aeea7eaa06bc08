package halo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/solver"
)

// transport opens the two ends of a link for the suite.
type transport struct {
	name string
	open func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error)
}

func transports(t testing.TB) []transport {
	small := serve(t, &server.Options{MaxPayload: 1500})
	normal := serve(t, &server.Options{})
	overNATS := func(s *testServer) func(testing.TB, End, End, time.Duration) (Link, Link, error) {
		return func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return openNATS(t, a, b, NATSOptions{Timeout: timeout, AskAfter: 5 * time.Millisecond}, s.connect(t),
				s.connect(t))
		}
	}
	return []transport{
		{TransportMemory, func(_ testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return NewMemory(a, b, timeout)
		}},
		{TransportShared, openShared},
		{TransportNATS, overNATS(normal)},
		{TransportNATS + ", max_payload 1500", overNATS(small)},
		{TransportNATS + ", connections of their own",
			func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
				dial := func(context.Context) (OwnConn, error) { return normal.connect(t), nil }
				return openNATS(t, a, b, NATSOptions{Dial: dial, Timeout: timeout, AskAfter: 5 * time.Millisecond}, nil,
					nil)
			}},
	}
}

func openShared(_ testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
	o := SharedOptions{Timeout: timeout}
	la, h, err := CreateShared(a, o)
	if err != nil {
		return nil, nil, err
	}
	lb, err := OpenShared(b, h, o)
	if err != nil {
		return nil, nil, errors.Join(err, la.Close())
	}
	return la, lb, nil
}

func openNATS(t testing.TB, a, b End, o NATSOptions, ca, cb Conn) (Link, Link, error) {
	oa, ob := o, o
	oa.Conn, ob.Conn = ca, cb
	la, err := NewNATS(t.Context(), a, oa)
	if err != nil {
		return nil, nil, err
	}
	lb, err := NewNATS(t.Context(), b, ob)
	if err != nil {
		return nil, nil, errors.Join(err, la.Close())
	}
	return la, lb, nil
}

// must opens both ends. It closes them after the test.
func (tr transport) must(t testing.TB, e End, timeout time.Duration) (Link, Link) {
	t.Helper()
	a, b, err := tr.open(t, e, e.Facing(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, a, b)
	return a, b
}

// closeAfter closes links after the test.
func closeAfter(t testing.TB, links ...Link) {
	t.Cleanup(func() {
		for _, l := range links {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

const long = 30 * time.Second // a timeout that is reached only when something is wrong

func TestConformance(t *testing.T) {
	for _, tr := range transports(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Run("sizes", func(t *testing.T) { testSizes(t, tr) })
			t.Run("many exchanges", func(t *testing.T) {
				e := freshEnd(100, 3)
				a, b := tr.must(t, e, long)
				both(t, a, b, e, 0, 500, nil)
			})
			t.Run("first exchange 1000", func(t *testing.T) {
				e := freshEnd(10, 2)
				a, b := tr.must(t, e, long)
				both(t, a, b, e, 1001, 20, nil)
			})
			t.Run("slow", func(t *testing.T) { testSlow(t, tr) })
			t.Run("one exchange ahead", func(t *testing.T) { testAhead(t, tr) })
			t.Run("timeout", func(t *testing.T) { testTimeout(t, tr) })
			t.Run("cancel", func(t *testing.T) { testCancel(t, tr) })
			t.Run("close", func(t *testing.T) { testClose(t, tr) })
			t.Run("lengths", func(t *testing.T) { testLengths(t, tr) })
			t.Run("mismatch", func(t *testing.T) { testMismatch(t, tr) })
			t.Run("bad ends", func(t *testing.T) { testBadEnds(t, tr) })
		})
	}
}

func testSizes(t *testing.T, tr transport) {
	for _, c := range []struct{ nx, depth int }{{3, 1}, {1, 1}, {7, 8}, {1021, 5}, {2048, 8}, {65536, 5}} {
		t.Run(fmt.Sprintf("%d rows x %d", c.depth, c.nx), func(t *testing.T) {
			e := freshEnd(c.nx, c.depth)
			a, b := tr.must(t, e, long)
			both(t, a, b, e, 0, 2, nil)
		})
	}
	t.Run("different rows each way", func(t *testing.T) {
		e := freshEnd(33, 4)
		e.Send.Lo = e.Send.Hi - 1
		a, b := tr.must(t, e, long)
		both(t, a, b, e, 0, 3, nil)
	})
}

// testSlow delays calls on both ends at random.
func testSlow(t *testing.T, tr transport) {
	e := freshEnd(64, 2)
	for seed := range uint64(5) {
		e.Run = RunIDOf(fmt.Sprint("slow ", tr.name, seed))
		a, b := tr.must(t, e, long)
		f := Faults{Seed: seed, Delay: 0.5, MaxDelay: 3 * time.Millisecond}
		g := f
		g.Seed += 100
		both(t, f.Link(a), g.Link(b), e, 0, 20, nil)
	}
}

// testAhead lets one end send exchange n+1 before the other one receives exchange n.
func testAhead(t *testing.T, tr transport) {
	e := freshEnd(500, 2)
	a, b := tr.must(t, e, long)
	out, in := make([]byte, e.SendBytes()), make([]byte, e.RecvBytes())
	send := func(l Link, rank int, rows solver.Stripe, exchange solver.ExchangeNumber) {
		t.Helper()
		fill(out, rank, rows, e.NX, exchange)
		if err := l.Send(t.Context(), exchange, out); err != nil {
			t.Fatal(err)
		}
	}
	recv := func(l Link, rank int, rows solver.Stripe, exchange solver.ExchangeNumber) {
		t.Helper()
		if err := l.Recv(t.Context(), exchange, in); err != nil {
			t.Fatal(err)
		}
		if err := verify(in, rank, rows, e.NX, exchange); err != nil {
			t.Fatal(err)
		}
	}
	send(a, e.Rank, e.Send, 0)
	for i := range solver.ExchangeNumber(50) {
		send(b, e.Neighbour, e.Recv, i)
		recv(a, e.Neighbour, e.Recv, i)
		send(a, e.Rank, e.Send, i+1)
		recv(b, e.Rank, e.Send, i)
	}
}

func testTimeout(t *testing.T, tr transport) {
	e := freshEnd(8, 8)
	_, b := tr.must(t, e, 20*time.Millisecond)
	err := b.Recv(t.Context(), 17, make([]byte, e.SendBytes()))
	var timeout *TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("got %v, want a TimeoutError", err)
	}
	if timeout.Rank != 3 || timeout.Neighbour != 2 || timeout.Exchange != 17 || timeout.Sending {
		t.Errorf("wrong fields: %+v", timeout)
	}
	name, _, _ := strings.Cut(tr.name, ",")
	want := "halo: rank 3 waited 20ms for the rows [120, 128) of exchange 17 from rank 2 (top side) over " + name
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %q\nwant %q", err, want)
	}
}

func testCancel(t *testing.T, tr transport) {
	e := freshEnd(8, 1)
	a, _ := tr.must(t, e, long)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("rank 7 is gone")
	done := make(chan error)
	go func() { done <- a.Recv(ctx, 0, make([]byte, e.RecvBytes())) }()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func testClose(t *testing.T, tr transport) {
	e := freshEnd(8, 1)
	a, _ := tr.must(t, e, long)
	done := make(chan error)
	started := make(chan struct{})
	go func() {
		close(started)
		done <- a.Recv(t.Context(), 0, make([]byte, e.RecvBytes()))
	}()
	<-started
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("Recv during Close: %v, want %v", err, ErrClosed)
	}
	if err := a.Send(t.Context(), 0, make([]byte, e.SendBytes())); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: %v, want %v", err, ErrClosed)
	}
	if err := a.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func testLengths(t *testing.T, tr transport) {
	e := freshEnd(8, 1)
	a, _ := tr.must(t, e, long)
	var m *MismatchError
	if err := a.Send(t.Context(), 0, make([]byte, 63)); !errors.As(err, &m) {
		t.Errorf("Send of 63 bytes: %v, want a MismatchError", err)
	}
	if err := a.Recv(t.Context(), 0, make([]byte, 65)); !errors.As(err, &m) {
		t.Errorf("Recv of 65 bytes: %v, want a MismatchError", err)
	}
}

// testMismatch opens two ends that do not match. It expects an error then, or at the first exchange.
func testMismatch(t *testing.T, tr transport) {
	for name, change := range map[string]func(*End){
		"columns": func(e *End) { e.NX = 9 },
		"dtype":   func(e *End) { e.DType = solver.Float32 },
		"rows":    func(e *End) { e.Recv = solver.Stripe{Lo: 119, Hi: 127} },
	} {
		t.Run(name, func(t *testing.T) {
			e := freshEnd(8, 8)
			wrong := e.Facing()
			change(&wrong)
			a, b, err := tr.open(t, e, wrong, long)
			if err == nil {
				closeAfter(t, a, b)
				if err := a.Send(t.Context(), 0, make([]byte, e.SendBytes())); err != nil {
					t.Fatal(err)
				}
				err = b.Recv(t.Context(), 0, make([]byte, wrong.RecvBytes()))
			}
			var m *MismatchError
			if !errors.As(err, &m) || m.Field != name {
				t.Errorf("got %v, want a mismatch of %s", err, name)
			}
		})
	}
}

func testBadEnds(t *testing.T, tr transport) {
	for name, change := range map[string]func(*End){
		"no columns": func(e *End) { e.NX = 0 },
		"no dtype":   func(e *End) { e.DType = 2 },
		"no rows":    func(e *End) { e.Send.Hi = e.Send.Lo },
		"no rank":    func(e *End) { e.Rank = -1 },
		"no side":    func(e *End) { e.Side = 7 },
		"huge":       func(e *End) { e.NX, e.Recv.Lo, e.Recv.Hi = 1<<32-1, 0, 1<<32-1 },
	} {
		e := freshEnd(8, 8)
		change(&e)
		if _, _, err := tr.open(t, e, e.Facing(), long); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}
