package roster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
)

// keepAlive starts the beats of all comms.
func keepAlive(t *testing.T, comms []*Comm, limit time.Duration) {
	t.Helper()
	for _, comm := range comms {
		if err := comm.KeepAlive(limit); err != nil {
			t.Fatal(err)
		}
	}
}

// ended waits for the end of a comm, and returns its cause.
func ended(t *testing.T, comm *Comm) error {
	t.Helper()
	select {
	case <-comm.Context().Done():
	case <-time.After(time.Minute):
		t.Fatalf("rank %d does not notice", comm.Self().Rank)
	}
	return context.Cause(comm.Context())
}

// A rank that falls silent ends all others, whether it or they are idle. They name it, its host, its sweeps and the
// time of its last beat.
func TestSilentRankIsNoticedByAll(t *testing.T) {
	for _, c := range []struct{ silent, working int }{{2, 4}, {0, 2}, {3, 2}} {
		silent := c.silent
		t.Run(fmt.Sprintf("%d, %d working", silent, c.working), func(t *testing.T) {
			comms := joined(t, plain(rostertest.Start(t, 0)), 4)
			for _, comm := range comms {
				comm.SetWorking(c.working)
				comm.SetIterations(100 + comm.Self().Rank)
			}
			keepAlive(t, comms, time.Second)
			comms[silent].Close() // it neither sends nor receives any more
			want := fmt.Sprintf("rank %d on host%d was silent for 1s, since ", silent, silent)
			for _, comm := range comms {
				if comm.Self().Rank == silent {
					continue
				}
				// A rank that noticed has the error itself; a rank that was told has an abort with its text.
				if cause := ended(t, comm); !IsConsequence(cause) || !strings.Contains(cause.Error(), want) {
					t.Errorf("rank %d ends with %v, want %s", comm.Self().Rank, cause, want)
				}
				if _, err := comm.AwaitEnd(t.Context(), "end"); comm.Self().Rank > 0 &&
					(!IsConsequence(err) || !strings.Contains(err.Error(), want)) {
					t.Errorf("rank %d waits until %v, want %s", comm.Self().Rank, err, want)
				}
			}
		})
	}
}

// hear gives w the beat of a rank.
func (w *watch) hear(rank int, number uint64, sweeps int) {
	w.receive(pubsub.Message{Data: fmt.Appendf(nil, `{"rank": %d, "number": %d, "sweeps": %d}`, rank, number, sweeps)})
}

// Silence is counted in ticks of the rank's own clock. A rank that was itself stopped, however long, blames no rank
// whose beats came meanwhile.
func TestOwnPauseIsNobodysSilence(t *testing.T) {
	w := (&Comm{self: member(1, 3), members: newList(all(3)), conn: deafConn{}}).newWatch(time.Minute)
	w.heard[0].at = time.Now().Add(-time.Hour)
	own := uint64(0)
	ticks := func(n int, when string) {
		t.Helper()
		for i := range n {
			own++
			w.hear(1, own, 0) // this rank's own beat, sent back by the server
			if err := w.look(); err != nil {
				t.Fatalf("tick %d %s: %v", i, when, err)
			}
		}
	}
	ticks(beatsPerLimit, "without a sign")
	w.hear(2, 1, 9) // of a rank that is not watched
	w.receive(pubsub.Message{Data: []byte(`nonsense`)})
	w.hear(0, 3, 7)
	ticks(beatsPerLimit, "after a sign")
	w.hear(1, own+1, 0)
	err := w.look()
	s, ok := errors.AsType[*SilentError](err)
	if !ok || s.Rank != 0 || s.Sweeps != 7 || time.Since(s.Since) > 30*time.Second {
		t.Fatalf("%#v", err)
	}
	want := "rank 0 on host0 was silent for 1m0s, since " + s.Since.Format(time.TimeOnly) +
		", when it had done 7 iterations: it is dead, stopped or cut off"
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A beat counts once: those that come again, or late, are no sign of life of the rank nor of the server.
func TestReplayedBeatsAreSilence(t *testing.T) {
cases:
	for _, stopped := range []int{0, 1} {
		w := (&Comm{self: member(1, 2), members: newList(all(2)), conn: deafConn{}}).newWatch(time.Minute)
		beats := []uint64{7, 7}
		for tick := range beatsPerLimit + 2 {
			beats[1-stopped]++
			for rank, newest := range beats {
				w.hear(rank, newest, 70)
				w.hear(rank, newest, 71)
				w.hear(rank, newest-1, 69)
			}
			err := w.look()
			if tick < beatsPerLimit && err != nil {
				t.Fatalf("tick %d: %v", tick, err)
			}
			silent, rank := errors.AsType[*SilentError](err)
			_, server := errors.AsType[*ServerError](err)
			if stopped == 0 && rank && silent.Sweeps == 70 || stopped == 1 && server {
				continue cases
			}
		}
		t.Errorf("the silence of rank %d is not noticed", stopped)
	}
}

// faultyConn is a connection that knows why it has no server.
type faultyConn struct{ pubsub.Conn }

func (faultyConn) Address() string { return "nats://there:4222" }
func (faultyConn) Fault() error    { return errors.New("no route to it") }

// While the server is silent, only the server is blamed. Once it is back, ranks have the whole limit for their next
// beat.
func TestSilentServerIsNobodyElsesSilence(t *testing.T) {
	for _, c := range []struct {
		conn pubsub.Conn
		want string
	}{
		{deafConn{}, " at nats.url for 1m0s, since %s: it is gone or stopped, or this rank is cut off from it"},
		{faultyConn{}, " for 1m0s, since %s: no route to it"},
	} {
		w := (&Comm{self: member(0, 3), members: newList(all(3)), conn: c.conn}).newWatch(time.Minute)
		for n := range uint64(3) { // away and back, each time for less than the limit
			w.hear(0, n+1, 0)
			for i := range beatsPerLimit {
				if err := w.look(); err != nil {
					t.Fatalf("tick %d: %v", i, err)
				}
			}
		}
		err := w.look()
		s, ok := errors.AsType[*ServerError](err)
		if !ok || IsConsequence(err) != (s.Why == nil) {
			t.Fatalf("%#v", err)
		}
		want := "nothing was heard from the NATS server" + fmt.Sprintf(c.want, s.Since.Format(time.TimeOnly))
		if err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// A server that does not come back ends every rank with an error about the server, not about another rank.
func TestServerThatGoesIsNoticed(t *testing.T) {
	srv := rostertest.Start(t, 0)
	comms := joined(t, plain(srv), 3)
	keepAlive(t, comms, time.Second)
	srv.Stop()
	for _, comm := range comms {
		if cause := ended(t, comm); !errors.As(cause, new(*ServerError)) {
			t.Errorf("rank %d ends with %v", comm.Self().Rank, cause)
		}
	}
}

// While the launcher is stopped, and the server with it, silence is not counted.
func TestSilenceIsNotCountedWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Bool
		ctx, cancel := context.WithCancelCause(awake.Start(t.Context(), held.Load))
		comm := &Comm{self: member(0, 3), members: newList(all(3)), conn: deafConn{}, ctx: ctx, cancel: cancel,
			clock: awake.Of(ctx)}
		held.Store(true)
		go comm.keepAlive(comm.newWatch(10 * time.Second))
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatalf("held: %v", context.Cause(ctx))
		}
		held.Store(false)
		begin := time.Now()
		<-ctx.Done()
		if took := time.Since(begin); took < 9*time.Second || took > 13*time.Second {
			t.Errorf("the server was missed after %v, want 10s", took)
		}
		if _, ok := errors.AsType[*ServerError](context.Cause(ctx)); !ok {
			t.Errorf("%v", context.Cause(ctx))
		}
	})
}

// deafConn accepts messages and delivers none.
type deafConn struct{ pubsub.Conn }

func (deafConn) Publish(string, []byte) error           { return nil }
func (deafConn) FlushWithContext(context.Context) error { return nil }
