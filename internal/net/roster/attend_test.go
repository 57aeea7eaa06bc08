package roster

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
)

func hostOf(rank int) string { return fmt.Sprintf("host%d", rank) }

// A launcher notices that rank 0 has fallen silent, of a run of one rank and of one of several.
func TestAttend(t *testing.T) {
	for _, size := range []int{1, 3} {
		server := rostertest.Start(t, 0)
		found := make(chan *SilentError, 1)
		stop, err := Attend(t.Context(), wire.Over(server.Dial()), "test", time.Second, time.Minute, hostOf,
			func(e *SilentError) { found <- e })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		comms := joined(t, plain(server), size)
		comms[0].SetIterations(7)
		began := time.Now()
		if err := comms[0].KeepAlive(time.Second); err != nil { // the others would notice first
			t.Fatal(err)
		}
		var signs atomic.Int32
		third := make(chan struct{})
		unwatch, err := WatchLife(wire.Over(server.Dial()), "test", func() {
			if signs.Add(1) == 3 {
				close(third)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		<-third
		unwatch()
		comms[0].Close()
		select {
		case e := <-found:
			if e.Rank != 0 || e.Host != "host0" || e.Sweeps != 7 || e.Since.Before(began) {
				t.Errorf("%d ranks: %+v", size, e)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%d ranks: nothing is noticed", size)
		}
	}
}

// A launcher blames no rank while the server is silent, however long, and gives it a little more time than other ranks
// do. Before the first beat a rank has the time of a start.
func TestAttendCountsTicks(t *testing.T) {
	const start = 5 * time.Minute
	w := overRank0(deafConn{}, time.Minute, start, hostOf)
	own := uint64(0)
	ticks := func(n int, served bool, when string) {
		t.Helper()
		for i := range n {
			if served {
				own++
				w.hear(launcher, own, 0)
			}
			if err := w.lookAtRanks(); err != nil {
				t.Fatalf("tick %d %s: %v", i, when, err)
			}
		}
	}
	ticks(int(start/time.Minute)*beatsPerLimit, true, "before the first beat")
	w.hear(0, 1, 5)
	ticks(beatsPerLimit+later, true, "after the first beat")
	ticks(1000, false, "without a server")
	w.hear(0, 2, 6)
	ticks(beatsPerLimit+later, true, "after the next beat")
	w.hear(launcher, own+1, 0)
	want := "was silent for 1m0s, since "
	if e, ok := w.lookAtRanks().(*SilentError); !ok || e.Sweeps != 6 || e.Words()[:len(want)] != want {
		t.Errorf("%v", e)
	}
}
