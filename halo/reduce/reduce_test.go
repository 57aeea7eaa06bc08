package reduce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/internal/roster"
	"jacobi/internal/roster/rostertest"
	"jacobi/internal/shm"
	"jacobi/solver"
)

const testSums = 70

func testMember(rank, size int, node string) roster.Member {
	return roster.Member{
		Identity: roster.Identity{RunID: "test", Rank: rank, Size: size, LocalSize: 1}, Version: "v", ConfigHash: "c",
		Host: "host" + node, PID: 1000 + rank, NodeID: node,
	}
}

// options for rank r of a test.
type tune func(r int, o *Options)

// cluster opens a reduction with a rank on each of the named nodes; "" shares with nobody.
func cluster(t testing.TB, dial func(rank int) roster.Conn, nodes []string, tunes ...tune) []*Reducer {
	t.Helper()
	reducers, errs := make([]*Reducer, len(nodes)), make([]error, len(nodes))
	var wg sync.WaitGroup
	for r := range nodes {
		conn := dial(r)
		wg.Go(func() {
			team, err := roster.Join(t.Context(), conn, testMember(r, len(nodes), nodes[r]), 10*time.Second)
			if err != nil {
				errs[r] = err
				return
			}
			t.Cleanup(team.Close)
			o := Options{Team: team, MaxSums: testSums, Timeout: 20 * time.Second, ask: 2 * time.Millisecond}
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

func plain(t testing.TB) func(int) roster.Conn {
	s := rostertest.Start(t, 0)
	return func(int) roster.Conn { return s.Dial() }
}

// contributionOf returns what rank gives to pass: one to testSums sums with all their bits in use.
func contributionOf(rank int, pass uint64) solver.Contribution {
	rng := rand.New(rand.NewPCG(uint64(rank), pass))
	c := solver.Contribution{Sums: make([]solver.Sum, 1+pass*31%testSums), Flags: solver.Flags(rank+int(pass)) % 8}
	for i := range c.Sums {
		c.Sums[i] = solver.Sum{Limbs: [3]uint64{rng.Uint64(), rng.Uint64(), rng.Uint64() >> 12}, Bad: rng.IntN(50) == 0}
	}
	return c
}

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

// drive posts and waits for passes on one rank: by the seed's choice a pass behind, or at once.
func drive(ctx context.Context, r solver.Reducer, rank, ranks int, passes uint64) error {
	rng := rand.New(rand.NewPCG(uint64(rank), 99))
	var waited uint64
	for b := range passes {
		if err := r.Post(ctx, b, contributionOf(rank, b)); err != nil {
			return err
		}
		for waited < b || waited == b && (rng.IntN(2) == 0 || b == passes-1) {
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

var places = map[string][]string{
	"one rank":              {"a"},
	"two ranks, one node":   {"a", "a"},
	"eight ranks, one node": {"a", "a", "a", "a", "a", "a", "a", "a"},
	"two nodes of one":      {"a", "b"},
	"no node known":         {"", "", ""},
	"two nodes":             {"a", "a", "b", "b"},
	"nodes mixed":           {"a", "b", "a", "", "b", "a", "c"},
}

func TestTotals(t *testing.T) {
	for name, nodes := range places {
		t.Run(name, func(t *testing.T) { driveAll(t, cluster(t, plain(t), nodes), 60) })
		t.Run(name+", NATS only", func(t *testing.T) {
			reducers := cluster(t, plain(t), nodes, func(_ int, o *Options) { o.NATSOnly = true })
			driveAll(t, reducers, 30)
			if want := fmt.Sprintf("NATS, one of %d nodes", len(nodes)); len(nodes) > 1 &&
				reducers[0].Describe() != want {
				t.Errorf("the path is %q, want %q", reducers[0].Describe(), want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	reducers := cluster(t, plain(t), []string{"a", "a", "b", "b", "b", "c"})
	for r, want := range []string{
		"shared memory, 2 ranks; NATS, one of 3 nodes", "shared memory, 2 ranks, led by rank 0 among 3 nodes",
		"shared memory, 3 ranks; NATS, one of 3 nodes", "shared memory, 3 ranks, led by rank 2 among 3 nodes",
		"shared memory, 3 ranks, led by rank 2 among 3 nodes", "NATS, one of 3 nodes",
	} {
		if got := reducers[r].Describe(); got != want {
			t.Errorf("rank %d: %q, want %q", r, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for seed := range uint64(3) {
		for name, nodes := range map[string][]string{"nodes of one": {"", "", "", ""},
			"mixed": {"a", "b", "b", "a", "c"}} {
			t.Run(fmt.Sprint(name, ", seed ", seed), func(t *testing.T) {
				s := rostertest.Start(t, 0)
				conns := make([]*rostertest.Faulty, len(nodes))
				for r := range conns {
					conns[r] = rostertest.NewFaulty(s.Dial(), 100*seed+uint64(r), 0)
				}
				reducers := cluster(t, func(r int) roster.Conn { return conns[r] }, nodes)
				for _, c := range conns {
					c.Misbehave(0.15)
				}
				driveAll(t, reducers, 60)
				if conns[0].Lost() == 0 {
					t.Error("no message was lost")
				}
			})
		}
	}
}

// TestFallBack: ranks that cannot map their leader's segment take part over NATS.
func TestFallBack(t *testing.T) {
	broken := func(shm.Handle) (*shm.Segment, error) { return nil, errors.New("no such process") }
	for name, cannot := range map[string][]int{"one": {2}, "all": {1, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			reducers := cluster(t, plain(t), []string{"a", "a", "a", "a"}, func(r int, o *Options) {
				if slices.Contains(cannot, r) {
					o.open = broken
				}
			})
			driveAll(t, reducers, 30)
			if got, want := reducers[2].Describe(), fmt.Sprintf("NATS, one of %d nodes", len(cannot)+1); got != want {
				t.Errorf("rank 2: %q, want %q", got, want)
			}
		})
	}
}

func TestServerRestart(t *testing.T) {
	s := rostertest.Start(t, 0)
	reducers := cluster(t, func(int) roster.Conn { return s.Dial() }, []string{"a", "a", "b", ""})
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

// signalling closes reached when pass at is posted.
type signalling struct {
	path
	at      uint64
	reached chan struct{}
}

func (s *signalling) post(pass uint64, c solver.Contribution) error {
	if pass == s.at {
		close(s.reached)
	}
	return s.path.post(pass, c)
}

// TestTimeoutNamesRanks: whoever waits in vain says for whom, on whatever node that one is.
func TestTimeoutNamesRanks(t *testing.T) {
	for _, c := range []struct {
		nodes []string
		gone  int
	}{
		{[]string{"a", "a", "a"}, 1},
		{[]string{"", "", ""}, 2},
		{[]string{"", "", ""}, 0},
		{[]string{"a", "a", "b", "b"}, 3},
		{[]string{"a", "a", "b", "b"}, 1},
	} {
		t.Run(fmt.Sprint(c.nodes, " without ", c.gone), func(t *testing.T) {
			t.Parallel()
			reducers := cluster(t, plain(t), c.nodes, func(_ int, o *Options) { o.Timeout = 500 * time.Millisecond })
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

func TestMismatch(t *testing.T) {
	for name, nodes := range map[string][]string{"shared memory": {"a", "a"}, "NATS": {"", ""},
		"leader": {"a", "b", "a"}} {
		t.Run(name, func(t *testing.T) {
			reducers := cluster(t, plain(t), nodes)
			for rank, r := range reducers {
				if err := r.Post(t.Context(), 0, solver.Contribution{Sums: make([]solver.Sum, 2+rank)}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := reducers[0].Wait(t.Context(), 0)
			if _, ok := errors.AsType[*MismatchError](err); !ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	r := cluster(t, plain(t), []string{"a"})[0]
	ctx := t.Context()
	fails := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
	}
	wait := func(b uint64) error { _, err := r.Wait(ctx, b); return err }
	post := func(b uint64) error { return r.Post(ctx, b, contributionOf(0, b)) }
	fails("wait first", wait(0), "wait for pass 0 when 0 passes were posted")
	fails("pass 1 first", post(1), "pass 1 posted after 0 passes")
	fails("too many sums", r.Post(ctx, 0, solver.Contribution{Sums: make([]solver.Sum, testSums+1)}),
		"at most 70 were announced")
	for b := range uint64(2) {
		if err := post(b); err != nil {
			t.Fatal(err)
		}
	}
	fails("third pass", post(2), "pass 2 posted after 2 passes, of which 0 were waited for")
	fails("wait out of order", wait(1), "wait for pass 1")
	if err := wait(0); err != nil {
		t.Error(err)
	}
	fails("wait twice", wait(0), "wait for pass 0")
}

// TestForeignFrames: frames of others change nothing, are counted, and logged once.
func TestForeignFrames(t *testing.T) {
	s := rostertest.Start(t, 0)
	core, logs := observer.New(zap.InfoLevel)
	reducers := cluster(t, func(int) roster.Conn { return s.Dial() }, []string{"", "a", "a"}, func(r int, o *Options) {
		if r == 0 {
			o.Log = zap.New(core)
		}
	})
	root := reducers[0].path.(*star)
	good := frame{kind: contribution, run: root.run, pass: 0, rank: 1, c: contributionOf(1, 0)}
	with := func(f func(*frame)) []byte { g := good; f(&g); return g.encode() }
	cut := good.encode()
	flipped := good.encode()
	flipped[40] ^= 1
	noise := [][]byte{
		nil, []byte("hello"), cut[:len(cut)-1], flipped,
		with(func(f *frame) { f.run++ }), with(func(f *frame) { f.rank = 2 }), with(func(f *frame) { f.rank = 0 }),
		with(func(f *frame) { f.kind = total }),
		with(func(f *frame) { f.kind = 9 }), with(func(f *frame) { f.c.Sums = make([]solver.Sum, testSums+1) }),
		frame{kind: pending, run: root.run, rank: 1, waiting: []int{0}}.encode(),
	}
	conn := s.Dial()
	for _, b := range noise {
		if err := conn.Publish(root.subject("root"), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range [][]byte{nil, with(func(f *frame) { f.kind = total; f.rank = 1 }), good.encode()} {
		if err := conn.Publish(root.subject("all"), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	driveAll(t, reducers, 20)
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.refused != len(noise) {
		t.Errorf("%d frames were refused, want %d", root.refused, len(noise))
	}
	if logs.Len() != 1 {
		t.Errorf("%d lines were logged, want 1: %v", logs.Len(), logs.All())
	}
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add(frame{kind: contribution, run: 7, pass: 8, rank: 9, c: contributionOf(1, 2)}.encode())
	f.Add(frame{kind: total, c: solver.Contribution{Flags: solver.FlagStop | solver.FlagBusy}}.encode())
	f.Add(frame{kind: pending, waiting: []int{3, 4}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeFrame(b)
		if err == nil && !slices.Equal(got.encode(), b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, got, got.encode())
		}
	})
}

func BenchmarkReduction(b *testing.B) {
	for _, way := range []string{"shm", "nats"} {
		for _, ranks := range []int{2, 4, 8} {
			for _, sums := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/ranks=%d/sums=%d", way, ranks, sums), func(b *testing.B) {
					nodes := slices.Repeat([]string{"a"}, ranks)
					reducers := cluster(b, plain(b), nodes, func(_ int, o *Options) {
						o.NATSOnly, o.MaxSums, o.Spin = way == "nats", sums, shm.SpinTime((ranks+1)/2)
					})
					c := solver.Contribution{Sums: make([]solver.Sum, sums)}
					b.ResetTimer()
					var wg sync.WaitGroup
					for _, r := range reducers {
						wg.Go(func() {
							for i := range uint64(b.N) {
								if err := r.Post(b.Context(), i, c); err != nil {
									b.Error(err)
									return
								}
								if _, err := r.Wait(b.Context(), i); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wg.Wait()
				})
			}
		}
	}
}
