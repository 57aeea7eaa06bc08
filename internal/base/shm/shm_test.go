package shm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests start this binary again as their peer, with a handle in peerEnv.
const peerEnv = "JACOBI_SHM_TEST_PEER"

const rounds = 2000

func TestMain(m *testing.M) {
	if h := os.Getenv(peerEnv); h != "" {
		if err := peer(h); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// peer answers each round: it waits for the first word, adds one to the byte after the two words, and sets the second
// word.
func peer(handle string) error {
	var h Handle
	if err := json.Unmarshal([]byte(handle), &h); err != nil {
		return err
	}
	s, err := Open(h)
	if err != nil {
		return err
	}
	return errors.Join(answer(s), s.Close())
}

func answer(s *Segment) error {
	ping, pong := s.Word(0), s.Word(WordSize)
	deadline := time.Now().Add(20 * time.Second)
	for i := uint32(1); i <= rounds; i++ {
		if err := ping.Wait(context.Background(), 0, deadline, func(v uint32) bool { return v == i }); err != nil {
			return err
		}
		s.Bytes()[2*WordSize]++
		pong.Store(i)
	}
	return nil
}

func create(t testing.TB, size int) *Segment {
	t.Helper()
	s, err := Create(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ask(ctx context.Context, s *Segment) error {
	ping, pong := s.Word(0), s.Word(WordSize)
	for i := uint32(1); i <= rounds; i++ {
		s.Bytes()[2*WordSize] += 2
		ping.Store(i)
		if err := pong.Wait(ctx, 0, time.Time{}, func(v uint32) bool { return v == i }); err != nil {
			return err
		}
		if got, want := s.Bytes()[2*WordSize], byte(3*i); got != want {
			return fmt.Errorf("round %d: byte %d, want %d", i, got, want)
		}
	}
	return nil
}

func TestTwoProcesses(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := create(t, 3*WordSize)
	h, err := json.Marshal(s.Handle())
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), peerEnv+"="+string(h))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { asked <- ask(ctx, s) }()
	if err := cmd.Wait(); err != nil {
		stop(fmt.Errorf("peer: %w: %s", err, out.String()))
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
}

func TestMemoryOutlivesCreator(t *testing.T) {
	a, err := Create(64)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(a.Handle())
	if err != nil {
		t.Fatal(err)
	}
	copy(a.Bytes(), "rows")
	h := a.Handle()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := string(b.Bytes()[:4]); got != "rows" {
		t.Errorf("after the creator's Close the segment holds %q, want %q", got, "rows")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := Open(h); err == nil {
		t.Error("a closed segment was opened")
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Create(0); err == nil {
		t.Error("a segment of 0 bytes was created")
	}
	s, other := create(t, 100), create(t, 100)
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	with := func(f func(*Handle)) Handle {
		h := s.Handle()
		f(&h)
		return h
	}
	for name, c := range map[string]struct {
		h    Handle
		want string
	}{
		"nothing":          {Handle{}, "not a handle"},
		"another process":  {with(func(h *Handle) { h.PID = 1 << 30 }), "no such file"},
		"another file":     {with(func(h *Handle) { h.FD = int(file.Fd()) }), "not a segment"},
		"another segment":  {with(func(h *Handle) { h.FD = other.Handle().FD }), "nonce"},
		"another size":     {with(func(h *Handle) { h.Bytes = 99 }), "164 bytes, want 163"},
		"closed number":    {with(func(h *Handle) { h.FD = 1 << 20 }), "no such file"},
		"half of a nonce":  {with(func(h *Handle) { h.Nonce = h.Nonce[:16] }), "not a handle"},
		"nonce of another": {with(func(h *Handle) { h.Nonce = other.Handle().Nonce }), "nonce"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Open(c.h)
			if err == nil {
				o.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
}

func TestWaitEnds(t *testing.T) {
	s := create(t, WordSize)
	never := func(uint32) bool { return false }
	if err := s.Word(0).Wait(t.Context(), 0, time.Now().Add(time.Millisecond), never); !errors.Is(err,
		os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v, want %v", err, os.ErrDeadlineExceeded)
	}
	cause := errors.New("rank 3 is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	asleep := make(chan struct{})
	done := make(chan error)
	go func() {
		var once sync.Once
		done <- s.Word(0).Wait(ctx, 0, time.Time{},
			func(uint32) bool { once.Do(func() { close(asleep) }); return false })
	}()
	<-asleep
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("after cancellation: %v, want %v", err, cause)
	}
	if n := s.Word(0).waiters.Load(); n != 0 {
		t.Errorf("%d waiters are left, want 0", n)
	}
}

func TestManyWaiters(t *testing.T) {
	const n = 8
	s := create(t, (1+n)*WordSize)
	var wg sync.WaitGroup
	for k := 1; k <= n; k++ {
		wg.Go(func() {
			for i := uint32(1); i <= 100; i++ {
				if err := s.Word(0).Wait(t.Context(), 0, time.Time{},
					func(v uint32) bool { return v == i }); err != nil {
					t.Error(err)
				}
				s.Word(k * WordSize).Store(i)
			}
		})
	}
	for i := uint32(1); i <= 100; i++ {
		s.Word(0).Store(i)
		for k := 1; k <= n; k++ {
			if err := s.Word(k*WordSize).Wait(t.Context(), 0, time.Time{},
				func(v uint32) bool { return v == i }); err != nil {
				t.Error(err)
			}
		}
	}
	wg.Wait()
}

// TestUint64 increments a word from several goroutines, through two mappings.
func TestUint64(t *testing.T) {
	a := create(t, 16)
	b, err := Open(a.Handle())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var wg sync.WaitGroup
	for _, s := range []*Segment{a, b, a, b} {
		wg.Go(func() {
			for range 1000 {
				s.Uint64(8).Add(1)
			}
		})
	}
	wg.Wait()
	if got := a.Uint64(8).Load(); got != 4000 {
		t.Errorf("counted to %d, want 4000", got)
	}
}

func TestLocalNode(t *testing.T) {
	a, err := LocalNode()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := LocalNode(); a != b {
		t.Errorf("%v, then %v", a, b)
	}
	if a.Boot == "" || a.PIDNamespace == "" || strings.ContainsAny(a.PIDNamespace, "[]:") {
		t.Errorf("incomplete: %+v", a)
	}
}
