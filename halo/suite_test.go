package halo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "jacobi/halo"
	"jacobi/solver"
)

// transport is a transport under test.
type transport struct {
	// Name is the one in the errors of its links. What follows a comma only tells transports apart.
	Name string
	// Open opens the two ends of a link. What else it opens it closes after the test.
	Open func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error)
}

// Must opens both ends. It closes them after the test.
func (tr transport) Must(t testing.TB, e End, timeout time.Duration) (Link, Link) {
	t.Helper()
	a, b, err := tr.Open(t, e, e.Facing(), timeout)
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

// long is a timeout that is reached only when something is wrong.
const long = 30 * time.Second

// runSuite checks sizes, order, a slow neighbour, a sender that is one exchange ahead, timeout, cancellation, close,
// lengths that change from one exchange to the next, and mismatched ends.
func runSuite(t *testing.T, tr transport) {
	t.Run("sizes", func(t *testing.T) { testSizes(t, tr) })
	t.Run("many exchanges", func(t *testing.T) {
		e := freshEnd(100, 3)
		a, b := tr.Must(t, e, long)
		both(t, a, b, e, 0, 500, nil)
	})
	t.Run("first exchange 1000", func(t *testing.T) {
		e := freshEnd(10, 2)
		a, b := tr.Must(t, e, long)
		both(t, a, b, e, 1001, 20, nil)
	})
	t.Run("slow", func(t *testing.T) { testSlow(t, tr) })
	t.Run("one exchange ahead", func(t *testing.T) { testAhead(t, tr) })
	t.Run("timeout", func(t *testing.T) { testTimeout(t, tr) })
	t.Run("cancel", func(t *testing.T) { testCancel(t, tr) })
	t.Run("close", func(t *testing.T) { testClose(t, tr) })
	t.Run("lengths", func(t *testing.T) { testLengths(t, tr) })
	t.Run("another length", func(t *testing.T) { testAnotherLength(t, tr) })
	t.Run("too long", func(t *testing.T) { testTooLong(t, tr) })
	t.Run("mismatch", func(t *testing.T) { testMismatch(t, tr) })
	t.Run("bad ends", func(t *testing.T) { testBadEnds(t, tr) })
}

func testSizes(t *testing.T, tr transport) {
	for _, c := range []struct{ nx, depth int }{{3, 1}, {1, 1}, {7, 8}, {1021, 5}, {2048, 8}, {65536, 5}} {
		t.Run(fmt.Sprintf("%d rows x %d", c.depth, c.nx), func(t *testing.T) {
			e := freshEnd(c.nx, c.depth)
			a, b := tr.Must(t, e, long)
			both(t, a, b, e, 0, 2, nil)
		})
	}
	t.Run("different rows each way", func(t *testing.T) {
		e := freshEnd(33, 4)
		e.Send.Lo = e.Send.Hi - 1
		a, b := tr.Must(t, e, long)
		both(t, a, b, e, 0, 3, nil)
	})
}

// testSlow delays exchanges on both ends at random.
func testSlow(t *testing.T, tr transport) {
	e := freshEnd(64, 2)
	for seed := range uint64(5) {
		e.Run = RunIDOf(fmt.Sprint("slow ", tr.Name, seed))
		a, b := tr.Must(t, e, long)
		random := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))}
		both(t, a, b, e, 0, 20, func(rank int, _ solver.ExchangeNumber) {
			if r := random[rank-e.Rank]; r.IntN(2) == 0 {
				time.Sleep(time.Duration(r.Int64N(int64(3 * time.Millisecond))))
			}
		})
	}
}

// testAhead lets one end send exchange n+1 before the other one receives exchange n.
func testAhead(t *testing.T, tr transport) {
	e := freshEnd(500, 2)
	a, b := tr.Must(t, e, long)
	out, in := make([]byte, e.SendBytes()), make([]byte, e.RecvBytes())
	send := func(l Link, rank int, rows solver.Stripe, exchange solver.ExchangeNumber) {
		t.Helper()
		fillRows(out, rank, rows, e.NX, exchange)
		if err := l.Send(t.Context(), exchange, out); err != nil {
			t.Fatal(err)
		}
	}
	recv := func(l Link, rank int, rows solver.Stripe, exchange solver.ExchangeNumber) {
		t.Helper()
		if err := l.Recv(t.Context(), exchange, in); err != nil {
			t.Fatal(err)
		}
		if err := verifyRows(in, rank, rows, e.NX, exchange); err != nil {
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
	_, b := tr.Must(t, e, 500*time.Millisecond) // it bounds the opening, too
	err := b.Recv(t.Context(), 17, make([]byte, e.SendBytes()))
	var timeout *TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("got %v, want a TimeoutError", err)
	}
	if timeout.Rank != 3 || timeout.Neighbour != 2 || timeout.Exchange != 17 || timeout.Sending {
		t.Errorf("wrong fields: %+v", timeout)
	}
	name, _, _ := strings.Cut(tr.Name, ",")
	want := "halo: rank 3 waited 500ms for the rows [120, 128) of exchange 17 from rank 2 (top side) over " + name
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %q\nwant %q", err, want)
	}
}

func testCancel(t *testing.T, tr transport) {
	e := freshEnd(8, 1)
	a, _ := tr.Must(t, e, long)
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
	a, _ := tr.Must(t, e, long)
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

// testLengths has each exchange carry another number of bytes, and others up than down.
func testLengths(t *testing.T, tr transport) {
	e := freshEnd(4096, 3)
	a, b := tr.Must(t, e, long)
	lengths := []int{0, 8, 98304, 24, 98304, 98304, 0, 0, 40000, 56, 16384, 16392, 1, 3, 4, 98303}
	play := func(l Link, e End, out, in int) error {
		rows, want := make([]byte, e.SendBytes()), make([]byte, e.RecvBytes())
		for n := range solver.ExchangeNumber(3 * len(lengths)) {
			fillRows(rows, e.Rank, e.Send, e.NX, n)
			fillRows(want, e.Neighbour, e.Recv, e.NX, n)
			send, recv := lengths[(int(n)*out)%len(lengths)], lengths[(int(n)*in)%len(lengths)]
			if err := l.Send(t.Context(), n, rows[:send]); err != nil {
				return err
			}
			got := make([]byte, recv)
			if err := l.Recv(t.Context(), n, got); err != nil {
				return err
			}
			if !bytes.Equal(got, want[:recv]) {
				return fmt.Errorf("exchange %d: other rows than the %d bytes that were sent", n, recv)
			}
		}
		return nil
	}
	done := make(chan error)
	go func() { done <- play(b, e.Facing(), 3, 1) }()
	if err := errors.Join(play(a, e, 1, 3), <-done); err != nil {
		t.Error(err)
	}
}

// testAnotherLength receives more than was sent, and less.
func testAnotherLength(t *testing.T, tr transport) {
	for _, wanted := range []int{40, 56} {
		e := freshEnd(8, 1)
		a, b := tr.Must(t, e, long)
		if err := a.Send(t.Context(), 7, make([]byte, 48)); err != nil {
			t.Fatal(err)
		}
		var m *MismatchError
		err := b.Recv(t.Context(), 7, make([]byte, wanted))
		if !errors.As(err, &m) || *m != (MismatchError{Field: "bytes", Got: 48, Want: wanted}) {
			t.Errorf("got %v, want a mismatch of bytes 48 and %d", err, wanted)
		}
	}
}

func testTooLong(t *testing.T, tr transport) {
	e := freshEnd(8, 1)
	a, _ := tr.Must(t, e, long)
	want := MismatchError{Field: "bytes", Got: 65, Want: "at most 64"}
	var m *MismatchError
	if err := a.Send(t.Context(), 0, make([]byte, 65)); !errors.As(err, &m) || *m != want {
		t.Errorf("Send of 65 bytes: %v, want %v", err, &want)
	}
	if err := a.Recv(t.Context(), 0, make([]byte, 65)); !errors.As(err, &m) || *m != want {
		t.Errorf("Recv of 65 bytes: %v, want %v", err, &want)
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
			a, b, err := tr.Open(t, e, wrong, long)
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
		if _, _, err := tr.Open(t, e, e.Facing(), long); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}
