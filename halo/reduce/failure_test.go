package reduce

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

func TestFaults(t *testing.T) {
	for seed := range uint64(3) {
		for name, nodes := range map[string][]string{"nodes of one": {"", "", "", ""},
			"mixed": {"a", "b", "b", "a", "c"}} {
			t.Run(fmt.Sprint(name, ", seed ", seed), func(t *testing.T) {
				t.Parallel() // most of the time nothing happens until a stream sends again
				fan := treeFan
				if seed == 2 {
					fan = 1
				}
				s := rostertest.Start(t, 0)
				conns := make([]*rostertest.Faulty, len(nodes))
				for r := range conns {
					conns[r] = rostertest.NewFaulty(wire.Over(s.Dial()), 100*seed+uint64(r), rostertest.Faults{})
				}
				reducers := cluster(t, func(r int) pubsub.Conn { return conns[r] }, nodes,
					func(_ int, o *Options) { o.fan = fan })
				for _, c := range conns {
					c.Misbehave(rostertest.Lossy(0.15))
				}
				driveAll(t, reducers, 60)
				if conns[0].Lost() == 0 {
					t.Error("no message was lost")
				}
			})
		}
	}
}

func TestServerRestart(t *testing.T) {
	s := rostertest.Start(t, 0)
	reducers := cluster(t, func(int) pubsub.Conn { return wire.Over(s.Dial()) }, []string{"a", "a", "b", ""})
	half := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-half
		s.Restart()
	})
	reducers[3].path = &signalling{path: reducers[3].path, at: 50, reached: half}
	driveAll(t, reducers, 300)
	wg.Wait()
}

// signalling is a path that closes reached when pass at is posted.
type signalling struct {
	path
	at      uint64
	reached chan struct{}
}

func (s *signalling) post(pass uint64, c solver.Contribution) {
	if pass == s.at {
		close(s.reached)
	}
	s.path.post(pass, c)
}

// TestTimeoutNamesRanks checks that every rank that waits names the missing rank, whatever node that is on.
func TestTimeoutNamesRanks(t *testing.T) {
	for _, c := range []struct {
		nodes []string
		gone  int
		fan   int
	}{
		{[]string{"a", "a", "a"}, 1, treeFan},
		{[]string{"", "", ""}, 2, treeFan},
		{[]string{"", "", ""}, 0, treeFan},
		{[]string{"a", "a", "b", "b"}, 3, treeFan},
		{[]string{"a", "a", "b", "b"}, 1, treeFan},
		{[]string{"", "", "", ""}, 3, 1},
		{[]string{"", "", "", ""}, 1, 1},
		{[]string{"a", "a", "b", "b", "c", "c", "d"}, 5, 2},
		{[]string{"a", "a", "b", "b", "c", "c", "d"}, 6, 2},
		{[]string{"a", "b", "b", "c", "d", "d"}, 5, 1},
	} {
		t.Run(fmt.Sprint(c.nodes, " without ", c.gone, ", ", c.fan, " below"), func(t *testing.T) {
			t.Parallel()
			reducers := cluster(t, plain(t), c.nodes, func(_ int, o *Options) {
				o.Timeout, o.fan = 500*time.Millisecond, c.fan
			})
			driveAll(t, reducers, 5)
			var wg sync.WaitGroup
			for rank, r := range reducers {
				if rank == c.gone {
					continue
				}
				wg.Go(func() {
					if err := r.Post(t.Context(), 5, contributionOf(rank, 5)); err != nil {
						t.Error(err)
						return
					}
					_, err := r.Wait(t.Context(), 5)
					if _, ok := errors.AsType[*TimeoutError](err); !ok || !roster.IsConsequence(err) {
						t.Errorf("rank %d: %v", rank, err)
						return
					}
					want := fmt.Sprintf("reduction of pass 5: no contribution of rank %d within 500ms", c.gone)
					if err.Error() != want {
						t.Errorf("rank %d: %q, want %q", rank, err, want)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	cause := errors.New("rank 1 is gone")
	for name, nodes := range map[string][]string{"shared memory": {"a", "a"}, "NATS": {"", ""},
		"leader": {"a", "b", "a"}} {
		t.Run(name, func(t *testing.T) {
			r := cluster(t, plain(t), nodes)[0]
			ctx, cancel := context.WithCancelCause(t.Context())
			if err := r.Post(ctx, 0, contributionOf(0, 0)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { _, err := r.Wait(ctx, 0); done <- err }()
			cancel(cause)
			if err := <-done; !errors.Is(err, cause) {
				t.Errorf("error %v, want %v", err, cause)
			}
		})
	}
}
