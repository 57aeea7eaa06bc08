package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
)

// path carries the frames of one end to the other one, with faults.
type path struct {
	pubsub.Conn
	to      *Stream
	payload int64
	// fault returns the frames to deliver in place of b, now or later; nil: all are delivered once, in order.
	fault func(b []byte) [][]byte

	receiving sync.Mutex

	mu    sync.Mutex
	count map[frameKind]int // frames published, by kind
	bytes int
	err   error // of Publish
}

func (p *path) MaxPayload() int64 { return p.payload }

func (p *path) Publish(_ string, b []byte) error {
	f, err := ParseFrame(bytes.Clone(b))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.count[f.kind]++
	p.bytes += len(f.data)
	frames := [][]byte{bytes.Clone(b)}
	if p.fault != nil {
		frames = p.fault(frames[0])
	}
	go func() { // not in this goroutine, which holds the sender's lock
		p.receiving.Lock()
		defer p.receiving.Unlock()
		for _, b := range frames {
			if f, err := ParseFrame(b); err == nil {
				p.to.Receive(f)
			}
		}
	}()
	return nil
}

func (p *path) sent(k frameKind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[k]
}

// pair returns two ends and the paths from them, with chunks of up to 1000 bytes.
func pair(window int, pace Pace) (a, b *Stream, fromA, fromB *path) {
	paths := [2]*path{}
	for i := range paths {
		paths[i] = &path{payload: 1000 + frameHead + frameTail + 1, count: map[frameKind]int{}}
	}
	a = NewStream(StreamOptions{Conn: paths[0], Label: "a", Window: window, Pace: pace})
	b = NewStream(StreamOptions{Conn: paths[1], Label: "b", Window: window, Pace: pace})
	paths[0].to, paths[1].to = b, a
	return a, b, paths[0], paths[1]
}

// faulty loses, repeats, damages and reorders frames at random, from a seed.
func faulty(seed uint64) func(b []byte) [][]byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	var kept []byte
	return func(b []byte) [][]byte {
		switch n := rng.IntN(10); {
		case n < 2:
			return nil
		case n == 2:
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			return [][]byte{b}
		case n < 5:
			return [][]byte{b, b}
		case n < 7 && kept == nil:
			kept = b
			return nil
		}
		frames := [][]byte{b}
		if kept != nil {
			frames, kept = append(frames, kept), nil
		}
		return frames
	}
}

// sample returns the i-th message of a test: empty, of one chunk, of several, of whole chunks.
func sample(i int) []byte {
	m := make([]byte, []int{0, 8, 3500, 2000}[i%4])
	for j := range m {
		m[j] = byte(i + j)
	}
	return m
}

// talk sends n messages on each end and checks what the other one receives.
func talk(t *testing.T, ctx context.Context, a, b *Stream, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for _, ends := range [][2]*Stream{{a, b}, {b, a}} {
		wg.Go(func() {
			for i := range n {
				m := sample(i)
				if err := ends[0].Send(ctx, m); err != nil {
					t.Errorf("send %d: %v", i, err)
					return
				}
				clear(m) // the stream keeps a copy
			}
			if err := ends[0].Flush(ctx); err != nil {
				t.Errorf("flush: %v", err)
			}
		})
		wg.Go(func() {
			for i := range n {
				got, err := ends[1].Recv(ctx)
				if err != nil || !bytes.Equal(got, sample(i)) {
					t.Errorf("message %d: %d bytes, %v", i, len(got), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestStreamDeliversOnceAndInOrder(t *testing.T) {
	for _, window := range []int{1, 3, DefaultWindow} {
		for seed := range uint64(3) {
			synctest.Test(t, func(t *testing.T) {
				a, b, fromA, fromB := pair(window, Pace{time.Millisecond, 4 * time.Millisecond})
				fromA.fault, fromB.fault = faulty(seed), faulty(seed+100)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				talk(t, ctx, a, b, 100)
				if n := fromA.sent(frameChunk); n <= 175 {
					t.Errorf("window %d, seed %d: %d chunks were sent, none again", window, seed, n)
				}
				// A goodbye is repeated until the other end says its own.
				var wg sync.WaitGroup
				wg.Go(func() {
					a.Close("that is all")
					if err := a.AwaitEnd(ctx); err != nil {
						t.Errorf("await the end: %v", err)
					}
				})
				if _, err := b.Recv(ctx); !errors.Is(err, ErrLeft) || b.Reason() != "that is all" {
					t.Errorf("after the last message: %v, reason %q", err, b.Reason())
				}
				b.Close("")
				if err := b.AwaitEnd(ctx); err != nil {
					t.Errorf("await the end: %v", err)
				}
				for !hasLeft(a) {
					b.mu.Lock()
					b.sayGoodbye() // an agent answers a goodbye for a stream that it has closed
					b.mu.Unlock()
					time.Sleep(time.Millisecond)
				}
				wg.Wait()
				if err := a.Send(ctx, nil); !errors.Is(err, ErrStreamClosed) {
					t.Errorf("send after Close: %v", err)
				}
			})
		}
	}
}

// Ends that take turns acknowledge with what they send. The last message, which nothing follows, is sent once more and
// then acknowledged. Messages go to Handle once and in order, also over a bad network.
func TestStreamInTurns(t *testing.T) {
	const turns = 100
	for _, faults := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b, fromA, fromB := pair(2, Pace{time.Second, 4 * time.Second})
			if faults {
				fromA.fault, fromB.fault = faulty(1), faulty(2)
			}
			a.o.Lazy, b.o.Lazy = true, true
			next, done := 0, make(chan bool)
			b.o.Handle = func(message []byte) {
				if err := b.Send(t.Context(), message); err != nil {
					t.Error(err)
				}
			}
			a.o.Handle = func(message []byte) {
				if !bytes.Equal(message, []byte{byte(next)}) {
					t.Errorf("message %d: %v", next, message)
				}
				if next++; next == turns {
					close(done)
				} else if err := a.Send(t.Context(), []byte{byte(next)}); err != nil {
					t.Error(err)
				}
			}
			if err := a.Send(t.Context(), []byte{0}); err != nil {
				t.Fatal(err)
			}
			<-done
			if n := fromA.sent(frameAck) + fromB.sent(frameAck); !faults && n != 0 {
				t.Errorf("%d acknowledgements in turns", n)
			}
			if err := b.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			acks, chunks := fromA.sent(frameAck), fromB.sent(frameChunk)
			if !faults && (acks != 1 || chunks != turns+1) {
				t.Errorf("%d acknowledgements and %d chunks at the end, want 1 and %d", acks, chunks, turns+1)
			}
			a.Stop()
			b.Stop()
		})
	}
}

func hasLeft(s *Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Streams go on where the server restarts, and where a client connects again.
func TestStreamSurvivesTheServer(t *testing.T) {
	s := rostertest.Start(t, 0)
	var ends [2]*Stream
	var conns [2]*Conn
	for i := range ends {
		conns[i], _ = join(t, s, "r1", secret)
		subject := func(i int) string { return fmt.Sprintf("jacobi.r1.end%d", i) }
		ends[i] = NewStream(StreamOptions{Conn: conns[i], Subject: subject(1 - i), Window: 2,
			Pace: Pace{5 * time.Millisecond, 20 * time.Millisecond}})
		if _, err := conns[i].Subscribe(subject(i), func(m pubsub.Message) {
			if f, err := ParseFrame(m.Data); err == nil {
				ends[i].Receive(f)
			}
		}); err != nil {
			t.Fatal(err)
		}
		flush(t, conns[i])
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	breaks := []func(){s.Restart, func() {
		if err := conns[1].Raw().ForceReconnect(); err != nil {
			t.Error(err)
		}
	}, s.Restart}
	for _, upset := range breaks {
		var wg sync.WaitGroup
		wg.Go(upset)
		talk(t, ctx, ends[0], ends[1], 60)
		wg.Wait()
		talk(t, ctx, ends[0], ends[1], 4)
	}
}

// A peer that never answers costs the window's memory, and every wait ends with its context.
func TestStreamToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, fromA, _ := pair(2, Pace{100 * time.Millisecond, time.Second})
		fromA.fault = func([]byte) [][]byte { return nil }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		for range 2 {
			if err := a.Send(ctx, sample(1)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("two messages that fit into the window took %v", took)
		}
		for what, call := range map[string]func() error{
			"send":      func() error { return a.Send(ctx, sample(1)) },
			"flush":     func() error { return a.Flush(ctx) },
			"receive":   func() error { _, err := a.Recv(ctx); return err },
			"await end": func() error { return a.AwaitEnd(ctx) },
		} {
			if err := call(); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 10*time.Second {
				t.Errorf("%s: %v after %v", what, err, time.Since(begin))
			}
		}
		// After 0.1, 0.3, 0.7, 1.5, then every second.
		if n := fromA.sent(frameChunk); n != 2*(1+4+8) || len(a.unacked) != 2 {
			t.Errorf("%d chunks were sent, and %d are kept; want 26 and 2", n, len(a.unacked))
		}
		cause := errors.New("the user is gone")
		gone, leave := context.WithCancelCause(t.Context())
		leave(cause)
		if err := a.Send(gone, nil); !errors.Is(err, cause) {
			t.Errorf("error %v, want %v", err, cause)
		}
		a.Stop()
		for _, err := range []error{a.Send(t.Context(), nil), a.Flush(t.Context()), a.AwaitEnd(t.Context())} {
			if !errors.Is(err, ErrStreamClosed) {
				t.Errorf("after Stop: %v", err)
			}
		}
		if _, err := a.Recv(t.Context()); !errors.Is(err, ErrStreamClosed) {
			t.Errorf("after Stop: %v", err)
		}
		n := fromA.sent(frameChunk)
		time.Sleep(time.Minute)
		if again := fromA.sent(frameChunk); again != n {
			t.Errorf("%d chunks were sent after Stop", again-n)
		}
	})
}

// What waits for the reader is sent at most twice, and arrives although the wait for it was given up.
func TestStreamWithASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, fromA, _ := pair(4, Pace{100 * time.Millisecond, time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := a.Send(ctx, sample(2)); err != nil {
			t.Fatal(err)
		}
		if err := a.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: %v", err)
		}
		if n := fromA.sent(frameChunk); n != 8 {
			t.Errorf("%d chunks were sent, want 4, twice", n)
		}
		if fromA.sent(frameAsk) < 3000 {
			t.Errorf("%d questions in an hour", fromA.sent(frameAsk))
		}
		if got, err := b.Recv(t.Context()); err != nil || !bytes.Equal(got, sample(2)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if err := a.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		// A message that was sent in part cannot be completed later.
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Send(short, make([]byte, 5000)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("send: %v", err)
		}
		want := "a message was sent in part: context deadline exceeded"
		if err := a.Send(t.Context(), nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		// Also an end that has failed says goodbye.
		a.Close("no more")
		for b.Reason() == "" {
			if _, err := b.Recv(t.Context()); err != nil && !errors.Is(err, ErrLeft) {
				t.Fatal(err)
			}
		}
		b.Close("")
		if err := a.AwaitEnd(t.Context()); err != nil || b.Reason() != "no more" {
			t.Errorf("%v, reason %q", err, b.Reason())
		}
	})
}
