package roster

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster/rostertest"
)

// The time of a wait stands still while a rank is at work, and passes once no rank is.
func TestWaitsWhileARankIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		comm, err := newComm(t.Context(), nil, member(1, 3))
		if err != nil {
			t.Fatal(err)
		}
		defer comm.Close()
		comm.work.begin(time.Second)
		ctx, cancel := awake.WithTimeout(comm.Context(), 30*time.Second)
		defer cancel()
		for steps := range uint64(3600) { // as rank 0 tells it
			comm.work.hear(0, steps)
			time.Sleep(time.Second)
		}
		for range 600 { // of its own
			comm.Worked()
			time.Sleep(time.Second)
		}
		if ctx.Err() != nil {
			t.Fatalf("while a rank is at work: %v", context.Cause(ctx))
		}
		begin := time.Now()
		<-ctx.Done()
		if took := time.Since(begin); took < 29*time.Second || took > 35*time.Second {
			t.Errorf("the wait ends %v after the work, want 30s", took)
		}
	})
}

// A rank that works for longer than the limit of a wait is waited for by all: rank 0, which hears it, and one that
// waits for rank 0.
func TestRankAtWorkIsNotGivenUp(t *testing.T) {
	const limit = time.Second
	comms := joined(t, plain(rostertest.Start(t, 0)), 3)
	keepAlive(t, comms, 3*limit)
	meet := func(comm *Comm) error {
		ctx, cancel := awake.WithTimeout(comm.Context(), limit)
		defer cancel()
		return comm.Barrier(ctx, "end")
	}
	heard := make(chan struct{})
	go func() { // closes heard once rank 1 has heard of work again and again, for several times the limit
		defer close(heard)
		for last, changes := uint64(0), 0; changes < 12 && comms[1].Context().Err() == nil; {
			if sum := comms[1].work.sum(); sum != last {
				last, changes = sum, changes+1
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var all sync.WaitGroup
	for _, comm := range comms[:2] {
		all.Go(func() {
			if err := meet(comm); err != nil {
				t.Errorf("rank %d: %v", comm.Self().Rank, err)
			}
		})
	}
	for working := true; working; {
		comms[2].Worked()
		select {
		case <-heard:
			working = false
		case <-time.After(time.Millisecond):
		}
	}
	if err := meet(comms[2]); err != nil {
		t.Errorf("rank 2: %v", err)
	}
	all.Wait()
}

// A rank that is alive and not at work is given up when the time of the wait is over.
func TestIdleRankIsGivenUp(t *testing.T) {
	comms := joined(t, plain(rostertest.Start(t, 0)), 2)
	keepAlive(t, comms, time.Second)
	comms[1].Worked() // long ago
	ctx, cancel := awake.WithTimeout(comms[0].Context(), time.Second)
	defer cancel()
	err := comms[0].Barrier(ctx, "end")
	if late, ok := errors.AsType[*TimeoutError](err); !ok || err.Error() !=
		`barrier "end": timed out waiting for rank 1` {
		t.Errorf("error %v (%v)", err, late)
	}
}
