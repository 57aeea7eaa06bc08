package roster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
)

// together runs f on all comms at once.
func together(t *testing.T, comms []*Comm, f func(ctx context.Context, comm *Comm) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, comm := range comms {
		wg.Go(func() {
			if err := f(ctx, comm); err != nil {
				t.Errorf("rank %d: %v", comm.Self().Rank, err)
			}
		})
	}
	wg.Wait()
}

func bytesOf(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0] = byte(seed)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func alone(t *testing.T) []*Comm {
	comm, err := Join(t.Context(), nil, member(0, 1), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(comm.Close)
	return []*Comm{comm}
}

// exercise calls every collective operation of the comms, several times with one name.
func exercise(t *testing.T, comms []*Comm, largest int) {
	t.Helper()
	together(t, comms, func(ctx context.Context, comm *Comm) error {
		rank := comm.Self().Rank
		for round, size := range []int{0, 1, 1000, largest} {
			seed := uint64(10*round + rank)
			got, err := comm.Gather(ctx, "data", bytesOf(seed, size+rank))
			if err != nil {
				return err
			}
			for r := range got {
				if !bytes.Equal(got[r], bytesOf(uint64(10*round+r), size+r)) {
					return fmt.Errorf("round %d: the data of rank %d arrived changed", round, r)
				}
			}
			if (got == nil) != (rank != 0) {
				return fmt.Errorf("gather returned %d parts", len(got))
			}
			word, err := comm.Broadcast(ctx, "data", bytesOf(seed, size))
			if err != nil {
				return err
			}
			if !bytes.Equal(word, bytesOf(uint64(10*round), size)) {
				return fmt.Errorf("round %d: the broadcast arrived changed", round)
			}
			if err := comm.Barrier(ctx, "data"); err != nil {
				return err
			}
		}
		return errors.Join(decideSums(ctx, comm), poolAll(ctx, comm))
	})
}

// poolAll has all ranks pool their data: some, none of one rank, none at all, and more than a message of the last one.
func poolAll(ctx context.Context, comm *Comm) error {
	rank, size := comm.Self().Rank, len(comm.Members())
	for round, of := range []func(rank int) []byte{
		func(r int) []byte { return bytesOf(uint64(r), 1+r) }, func(r int) []byte { return bytesOf(uint64(r), r) },
		func(int) []byte { return nil },
	} {
		var want []byte
		for r := range size {
			want = append(want, of(r)...)
		}
		if got, err := comm.Pool(ctx, "pool", of(rank)); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("round %d: pooled %v, %v; want %v", round, got, err, want)
		}
	}
	mine := []byte{1}
	if rank == size-1 {
		mine = make([]byte, MaxMessage)
	}
	if got, err := comm.Pool(ctx, "too much", mine); err != nil || len(got) > 0 {
		return fmt.Errorf("pooled %d bytes of more than a message, %v", len(got), err)
	}
	return nil
}

// decideSums has rank 0 decide twice by what all ranks say.
func decideSums(ctx context.Context, comm *Comm) error {
	rank, size := comm.Self().Rank, len(comm.Members())
	for round := range 2 {
		calls := 0
		got, err := DecideOn(ctx, comm, "numbers", rank+round, func(all []int) (map[string][]int, error) {
			calls++
			return map[string][]int{"all": all}, nil
		})
		if err != nil {
			return err
		}
		want := make([]int, size)
		for r := range want {
			want[r] = r + round
		}
		if wanted := map[int]int{0: 1}[rank]; !slices.Equal(got["all"], want) || calls != wanted {
			return fmt.Errorf("round %d: decision %v by %d calls here, want %v by %d", round, got, calls, want, wanted)
		}
	}
	return nil
}

func TestCollectives(t *testing.T) {
	t.Run("alone", func(t *testing.T) { exercise(t, alone(t), 1000) })
	t.Run("two ranks, 20 MB", func(t *testing.T) {
		exercise(t, joined(t, plain(rostertest.Start(t, 0)), 2),
			20_000_001)
	})
	t.Run("five ranks", func(t *testing.T) { exercise(t, joined(t, plain(rostertest.Start(t, 0)), 5), 1<<19) })
	t.Run("small messages", func(t *testing.T) { exercise(t, joined(t, plain(rostertest.Start(t, 2048)), 3), 10_000) })
}

func TestCollectivesWithFaults(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			comms := joined(t, faulty(rostertest.Start(t, 2048), seed, 0.1), 4)
			for _, comm := range comms {
				comm.post.pace = wire.Pace{First: 5 * time.Millisecond, Last: time.Second}
			}
			exercise(t, comms, 50_000)
			if comms[1].Conn().(*rostertest.Faulty).Lost() == 0 {
				t.Error("no message was lost")
			}
		})
	}
}

func TestServerRestart(t *testing.T) {
	s := rostertest.Start(t, 2048)
	comms := joined(t, plain(s), 3)
	for _, comm := range comms {
		comm.post.pace = wire.Pace{First: 5 * time.Millisecond, Last: time.Second}
	}
	began := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-began
		s.Restart()
	})
	together(t, comms, func(ctx context.Context, comm *Comm) error {
		got, err := comm.Gather(ctx, "before", nil)
		if err != nil {
			return err
		}
		if got != nil {
			close(began)
		}
		return nil
	})
	exercise(t, comms, 1_000_000)
	wg.Wait()
}

func TestTimeoutsNameRanks(t *testing.T) {
	comms := joined(t, plain(rostertest.Start(t, 0)), 4)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	done := make(chan error)
	go func() { _, err := comms[2].Gather(ctx, "parts", nil); done <- err }()
	_, err := comms[0].Gather(ctx, "parts", nil)
	var late *TimeoutError
	if want := `gather "parts": timed out waiting for ranks 1, 3`; err == nil || err.Error() != want ||
		!errors.As(err, &late) {
		t.Errorf("error %v, want %q", err, want)
	}
	if err := <-done; err != nil {
		t.Errorf("rank 2: %v", err)
	}
	_, err = comms[3].Broadcast(ctx, "word", nil)
	if want := "timed out waiting for rank 0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	if err := comms[3].Send(ctx, 4, "x", nil); err == nil ||
		!strings.Contains(err.Error(), "rank 4 is not another rank of a run of 4") {
		t.Errorf("send to rank 4 of 4: %v", err)
	}
	if err := comms[3].Send(ctx, 0, "x", make([]byte, MaxMessage+1)); err == nil ||
		!strings.Contains(err.Error(), "at most") {
		t.Errorf("send of too much: %v", err)
	}
}

// flushAll returns when the events of joining have been delivered.
func flushAll(t *testing.T, comms []*Comm) {
	t.Helper()
	for _, comm := range comms {
		if err := flush(t.Context(), comm.Conn(), flushTimeout); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAbortEndsAll(t *testing.T) {
	s := rostertest.Start(t, 0)
	comms := joined(t, plain(s), 4)
	flushAll(t, comms)
	var mu sync.Mutex
	var events []Event
	told := make(chan struct{}, 10)
	stop, err := WatchEvents(t.Context(), wire.Over(s.Dial()), "test", func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
		told <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	failed := make(chan struct{})
	var wg sync.WaitGroup
	for _, comm := range comms {
		wg.Go(func() {
			if comm.Self().Rank == 2 {
				<-failed
				if err := comm.Abort(errors.New("sweep 17: the norm is no number")); err != nil {
					t.Error(err)
				}
				return
			}
			if comm.Self().Rank == 1 {
				close(failed)
			}
			err := comm.Barrier(context.Background(), "never")
			abort, ok := errors.AsType[*AbortError](err)
			if want := (AbortError{Rank: 2, Host: "host2", Cause: "sweep 17: the norm is no number"}); !ok ||
				*abort != want {
				t.Errorf("rank %d: %v, want %v", comm.Self().Rank, err, want)
			}
			if !IsConsequence(err) {
				t.Errorf("rank %d: %v is no consequence", comm.Self().Rank, err)
			}
			if err := comm.Abort(err); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for range comms {
		<-told
	}
	mu.Lock()
	defer mu.Unlock()
	first := slices.IndexFunc(events, func(e Event) bool { return e.Kind == Aborted && !e.Consequence })
	if first < 0 || events[first].Rank != 2 || events[first].Text != "sweep 17: the norm is no number" {
		t.Errorf("the launcher hears of %+v", events)
	}
}

// TestConsequence checks which errors follow from the failure of another rank.
func TestConsequence(t *testing.T) {
	late := fmt.Errorf("sweep 9: %w", &TimeoutError{Op: "halo", Ranks: []int{2}})
	for _, err := range []error{late, os.ErrDeadlineExceeded, context.DeadlineExceeded, &AbortError{}} {
		if !IsConsequence(fmt.Errorf("x: %w", err)) {
			t.Errorf("%v is no consequence", err)
		}
	}
	if IsConsequence(errors.New("disk full")) {
		t.Error("a full disk is a consequence")
	}
}

func TestLauncherAbortsAndStops(t *testing.T) {
	s := rostertest.Start(t, 0)
	comms := joined(t, plain(s), 3)
	launcher := wire.Over(s.Dial())
	if err := RequestStop(t.Context(), launcher, "test", 0); err != nil {
		t.Fatal(err)
	}
	for _, comm := range comms {
		<-comm.StopRequested().Done()
		if err := comm.Context().Err(); err != nil {
			t.Errorf("a stop ended the context: %v", err)
		}
	}
	if err := AbortAll(t.Context(), launcher, "test",
		AbortError{Rank: 1, Host: "b", Cause: "killed by signal 9"}); err != nil {
		t.Fatal(err)
	}
	for _, comm := range comms {
		<-comm.Context().Done()
		if got, want := context.Cause(comm.Context()).Error(),
			"run aborted by rank 1 on b: killed by signal 9"; got != want {
			t.Errorf("cause %q, want %q", got, want)
		}
	}
}

// A barrier ends on all ranks though rank 0 has no time left to wait for their acknowledgements.
func TestBarrierReleasesAll(t *testing.T) {
	comms := joined(t, plain(rostertest.Start(t, 0)), 5)
	for i := range 20 {
		name := fmt.Sprint("hurry ", i)
		together(t, comms, func(ctx context.Context, comm *Comm) error {
			if comm.Self().Rank == 0 {
				return comm.release(ctx, "barrier", name, 1, comm.working, nil, 0)
			}
			_, err := comm.recvTold(ctx, "barrier", name)
			return err
		})
	}
}

// A decision that rank 0 cannot make fails there.
func TestDecideFails(t *testing.T) {
	cause := errors.New("no decision")
	_, err := DecideOn(t.Context(), alone(t)[0], "speed", 1, func([]int) (int, error) { return 0, cause })
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// mute is a connection whose server never answers.
type mute struct{ pubsub.Conn }

func (mute) FlushWithContext(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A flush that is cut short names the cause, not "context canceled".
func TestFlushNamesTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nats: maximum subscriptions exceeded"))
	const want = "no answer from the NATS server: nats: maximum subscriptions exceeded"
	if err := flush(ctx, mute{}, time.Minute); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
