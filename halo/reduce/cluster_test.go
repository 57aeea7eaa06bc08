package reduce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

const (
	testSums   = 70
	testWindow = 20
)

func testMember(rank, size int, node string) roster.Member {
	return roster.Member{
		Identity: roster.Identity{RunID: "test", Rank: rank, Size: size, LocalSize: 1}, Version: "v", ConfigHash: "c",
		Host: "host" + node, PID: 1000 + rank, Node: shm.Node{Boot: node},
	}
}

// tune changes the options of rank r.
type tune func(r int, o *Options)

// cluster opens a reduction with one rank on each of the named nodes. A rank on "" shares no memory.
func cluster(t testing.TB, dial func(rank int) pubsub.Conn, nodes []string, tunes ...tune) []*Reducer {
	t.Helper()
	reducers, errs := make([]*Reducer, len(nodes)), make([]error, len(nodes))
	var wg sync.WaitGroup
	for r := range nodes {
		conn := dial(r)
		wg.Go(func() {
			comm, err := roster.Join(t.Context(), conn, testMember(r, len(nodes), nodes[r]), 10*time.Second)
			if err != nil {
				errs[r] = err
				return
			}
			t.Cleanup(comm.Close)
			o := Options{Comm: comm, MaxSums: testSums, Window: testWindow, Timeout: 20 * time.Second,
				ask: 2 * time.Millisecond}
			for _, f := range tunes {
				f(r, &o)
			}
			reducers[r], errs[r] = New(t.Context(), o)
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		t.Cleanup(func() {
			if err := reducers[r].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return reducers
}

func plain(t testing.TB) func(int) pubsub.Conn {
	s := rostertest.Start(t, 0)
	return func(int) pubsub.Conn { return wire.Over(s.Dial()) }
}

// contributionOf returns the contribution of rank to pass: one to testSums sums with all their bits in use.
func contributionOf(rank int, pass uint64) solver.Contribution {
	rng := rand.New(rand.NewPCG(uint64(rank), pass))
	c := solver.Contribution{Sums: make([]solver.Sum, 1+pass*31%testSums), Flags: solver.Flags(rank+int(pass)) % 16}
	for i := range c.Sums {
		c.Sums[i] = solver.Sum{Limbs: [3]uint64{rng.Uint64(), rng.Uint64(), rng.Uint64() >> 12}, Bad: rng.IntN(50) == 0}
	}
	return c
}

// totalOf returns the total of pass over ranks.
func totalOf(ranks int, pass uint64) solver.Contribution {
	sum := contributionOf(0, pass)
	for r := 1; r < ranks; r++ {
		c := contributionOf(r, pass)
		sum.Flags |= c.Flags
		for i := range sum.Sums {
			sum.Sums[i].Merge(c.Sums[i])
		}
	}
	return sum
}

// drive posts passes on one rank and waits for them, later by a number of passes that changes with every pass.
func drive(ctx context.Context, r solver.Reducer, rank, ranks int, passes uint64) error {
	rng := rand.New(rand.NewPCG(uint64(rank), 99))
	var waited uint64
	for b := range passes {
		if err := r.Post(ctx, b, contributionOf(rank, b)); err != nil {
			return err
		}
		late := uint64(rng.IntN(testWindow))
		if b == passes-1 {
			late = 0
		}
		for waited+late <= b {
			got, err := r.Wait(ctx, waited)
			if err != nil {
				return err
			}
			want := totalOf(ranks, waited)
			if got.Flags != want.Flags || !slices.Equal(got.Sums, want.Sums) {
				return fmt.Errorf("pass %d: total %+v, want %+v", waited, got, want)
			}
			waited++
		}
	}
	return nil
}

// driveAll runs drive on all ranks at once.
func driveAll(t *testing.T, reducers []*Reducer, passes uint64) {
	t.Helper()
	var wg sync.WaitGroup
	for rank, r := range reducers {
		wg.Go(func() {
			if err := drive(t.Context(), r, rank, len(reducers), passes); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
}
