package reduce

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"jacobi/internal/base/shm"
	"jacobi/solver"
)

// places are the nodes of the ranks, by test.
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

// TestTrees checks trees of leaders with few leaders below each, and windows whose frames are sent one by one or
// together.
func TestTrees(t *testing.T) {
	nodes := []string{"a", "b", "a", "", "b", "a", "c", "d", "d", "", "e", "f"}
	for _, fan := range []int{1, 2, 3} {
		for _, window := range []int{testWindow, 3 * testWindow} {
			t.Run(fmt.Sprintf("%d below, window of %d", fan, window), func(t *testing.T) {
				driveAll(t, cluster(t, plain(t), nodes, func(_ int, o *Options) { o.fan, o.Window = fan, window }), 100)
			})
		}
	}
}

// TestTree checks the places of leaders 0, 2, 4, 6, 8 in a tree with two leaders below each.
func TestTree(t *testing.T) {
	for self, want := range map[int]tree{
		0: {-1, []int{2, 4}}, 2: {0, []int{6, 8}}, 4: {0, []int{}}, 6: {2, []int{}}, 8: {2, []int{}},
	} {
		if got := newTree([]int{0, 2, 4, 6, 8}, self, 2); !reflect.DeepEqual(got, want) {
			t.Errorf("leader %d: %+v, want %+v", self, got, want)
		}
	}
}

// TestFallBack checks that ranks that cannot map their leader's segment take part over NATS.
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

func TestMismatch(t *testing.T) {
	for name, nodes := range map[string][]string{"shared memory": {"a", "a"}, "NATS": {"", ""},
		"leader": {"a", "b", "a"}} {
		t.Run(name, func(t *testing.T) {
			reducers := cluster(t, plain(t), nodes, func(_ int, o *Options) { o.Window = 2 })
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
	for b := range uint64(testWindow) {
		if err := post(b); err != nil {
			t.Fatal(err)
		}
	}
	fails("pass beyond the window", post(testWindow), "pass 20 posted after 20 passes and 0 waits")
	fails("wait out of order", wait(1), "wait for pass 1")
	if err := wait(0); err != nil {
		t.Error(err)
	}
	fails("wait twice", wait(0), "wait for pass 0")
}

// repeat posts b.N passes on all ranks and waits for each when late further passes are posted.
func repeat(b *testing.B, reducers []*Reducer, late int, c solver.Contribution) {
	var wg sync.WaitGroup
	for _, r := range reducers {
		wg.Go(func() {
			for pass := range b.N + late {
				if pass < b.N {
					if err := r.Post(b.Context(), uint64(pass), c); err != nil {
						b.Error(err)
						return
					}
				}
				if pass < late {
					continue
				}
				if _, err := r.Wait(b.Context(), uint64(pass-late)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkReduction(b *testing.B) {
	for _, transport := range []string{"shm", "nats"} {
		for _, ranks := range []int{2, 4, 8} {
			for _, sums := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/ranks=%d/sums=%d", transport, ranks, sums), func(b *testing.B) {
					nodes := slices.Repeat([]string{"a"}, ranks)
					reducers := cluster(b, plain(b), nodes, func(_ int, o *Options) {
						o.NATSOnly, o.MaxSums, o.Spin = transport == "nats", sums, shm.SpinTime((ranks+1)/2)
					})
					c := solver.Contribution{Sums: make([]solver.Sum, sums)}
					b.ResetTimer()
					repeat(b, reducers, 0, c)
				})
			}
		}
	}
}
