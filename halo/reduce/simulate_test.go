package reduce

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

// simulated carries the frames of the streams among leaders, and counts the messages.
type simulated struct {
	mu       sync.Mutex
	arriving map[[2]int]chan wire.Frame // by sender and receiver
	messages map[[2]int]int             // received
}

// simulatedEnd is the connection of one end of a stream.
type simulatedEnd struct {
	pubsub.Conn
	net      *simulated
	from, to int
}

func (simulatedEnd) MaxPayload() int64 { return 1 << 20 }

func (e simulatedEnd) Publish(_ string, data []byte) error {
	f, err := wire.ParseFrame(slices.Clone(data))
	if err != nil {
		return err
	}
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.way(e.from, e.to) <- f
	return nil
}

// way returns the frames from one leader to another. mu is held, or nobody sends yet.
func (n *simulated) way(from, to int) chan wire.Frame {
	c := n.arriving[[2]int{from, to}]
	if c == nil {
		c = make(chan wire.Frame, 64)
		n.arriving[[2]int{from, to}] = c
	}
	return c
}

// simulate opens the stars of nodes with perNode ranks each, and at most fan leaders below one.
func simulate(t testing.TB, nodes, perNode, sums, window, fan int) (*simulated, []*star) {
	t.Helper()
	n := &simulated{arriving: map[[2]int]chan wire.Frame{}, messages: map[[2]int]int{}}
	leaders, stars := make([]int, nodes), make([]*star, nodes)
	for i := range leaders {
		leaders[i] = i * perNode
	}
	for i, self := range leaders {
		open := func(to int, handle func([]byte)) (*wire.Stream, error) {
			counted := func(message []byte) {
				n.mu.Lock()
				n.messages[[2]int{to, self}]++
				n.mu.Unlock()
				handle(message)
			}
			s := wire.NewStream(wire.StreamOptions{Conn: simulatedEnd{net: n, from: self, to: to},
				Window: window + notices, Lazy: true, Handle: counted})
			arriving := n.way(to, self)
			go func() {
				for f := range arriving {
					s.Receive(f)
				}
			}()
			return s, nil
		}
		ranks := func(leader int) []int { return []int{leader} }
		var err error
		if stars[i], err = newStar(&Options{MaxSums: sums, Window: window, ask: time.Minute}, self,
			newTree(leaders, self, fan), ranks, open); err != nil {
			t.Fatal(err)
		}
	}
	return n, stars
}

// advance posts pass on all nodes, and waits for the total of the pass that is late passes older.
func advance(t testing.TB, stars []*star, pass uint64, late int, c solver.Contribution) {
	t.Helper()
	for _, s := range stars {
		s.post(pass, c)
	}
	synctest.Wait()
	if pass < uint64(late) {
		return
	}
	for _, s := range stars {
		got, err := s.wait(t.Context(), pass-uint64(late), time.Now().Add(time.Minute))
		if err != nil || len(got.Sums) != len(c.Sums) || got.Sums[0].Limbs[0] != uint64(len(stars)) {
			t.Fatalf("%d nodes, pass %d: %v, %v", len(stars), pass, got, err)
		}
	}
}

// TestMessages counts messages: for each batch of passes, one from each leader but the root to its parent, and one
// back. No leader gets more than treeFan of them from those below.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ nodes, window, root int }{
		{2, 17, 1}, {16, 17, 15}, {64, 17, 63}, {65, 17, 63}, {512, 17, 63}, {512, 33, 63},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, stars := simulate(t, c.nodes, 8, 1, c.window, treeFan)
			one := solver.Contribution{Sums: []solver.Sum{{Limbs: [3]uint64{1}}}}
			const passes = 64
			for pass := range uint64(passes) {
				advance(t, stars, pass, c.window-1, one)
			}
			batches, all, to := passes/(c.window/8), 0, map[int]int{}
			for way, count := range n.messages {
				all += count
				if way[0] > way[1] {
					to[way[1]] += count
				}
				if count != batches {
					t.Errorf("%+v: %d messages from %d to %d, want %d", c, count, way[0], way[1], batches)
				}
			}
			for leader, count := range to {
				if count > batches*treeFan {
					t.Errorf("%+v: leader %d got %d messages in %d batches", c, leader, count, batches)
				}
			}
			if to[0] != batches*c.root || all != 2*batches*(c.nodes-1) {
				t.Errorf("%+v: %d messages for %d batches, %d of them to the root", c, all, batches, to[0])
			}
			for _, s := range stars {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}
			for _, c := range n.arriving {
				close(c)
			}
		})
	}
}

// BenchmarkNodes measures passes of leaders over a NATS server of this machine, whose totals are waited for at once or
// as late as the window allows.
func BenchmarkNodes(b *testing.B) {
	for _, nodes := range []int{2, 4, 8, 16, 32, 64} {
		for _, sums := range []int{1, 16} {
			for _, late := range []int{0, 1, 32} {
				b.Run(fmt.Sprintf("nodes=%d/sums=%d/late=%d", nodes, sums, late), func(b *testing.B) {
					names := make([]string, nodes)
					for i := range names {
						names[i] = strconv.Itoa(i)
					}
					reducers := cluster(b, plain(b), names, func(_ int, o *Options) {
						o.MaxSums, o.Window, o.Spin = sums, late+1, shm.SpinTime((nodes+1)/2)
					})
					c := solver.Contribution{Sums: make([]solver.Sum, sums)}
					b.ResetTimer()
					repeat(b, reducers, late, c)
				})
			}
		}
	}
}
