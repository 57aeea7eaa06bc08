package reduce

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/base/shm"
	"jacobi/solver"
)

// simulated delivers messages within this goroutine, in the order in which they are published, and counts them.
type simulated struct {
	pubsub.Conn // nil: other methods must not be called
	handlers    map[string][]func(pubsub.Message)
	queue       []pubsub.Message
	messages    map[string]int // published, by subject
	bytes       int
	root        time.Duration // in the handler of rank 0
}

func (n *simulated) Publish(subject string, data []byte) error {
	n.messages[subject]++
	n.bytes += len(data)
	n.queue = append(n.queue, pubsub.Message{Subject: subject, Data: slices.Clone(data)})
	return nil
}

func (n *simulated) Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error) {
	n.handlers[subject] = append(n.handlers[subject], handle)
	return nil, nil
}

func (n *simulated) FlushWithContext(context.Context) error { return nil }

// deliver hands all messages to their subscribers, and those that are published meanwhile.
func (n *simulated) deliver() {
	for len(n.queue) > 0 {
		m := n.queue[0]
		n.queue = n.queue[1:]
		start := time.Now()
		for _, handle := range n.handlers[m.Subject] {
			handle(m)
		}
		if m.Subject == "0" {
			n.root += time.Since(start)
		}
	}
}

// simulate opens the stars of nodes with perNode ranks each, and at most fan leaders below one.
func simulate(t testing.TB, nodes, perNode, sums, window, fan int) (*simulated, []*star) {
	t.Helper()
	n := &simulated{handlers: map[string][]func(pubsub.Message){}, messages: map[string]int{}}
	ranks, leaders, stars := map[int][]int{}, []int(nil), make([]*star, nodes)
	for i := range nodes {
		leaders = append(leaders, i*perNode)
		for r := range perNode {
			ranks[i*perNode] = append(ranks[i*perNode], i*perNode+r)
		}
	}
	for i := range stars {
		self := i * perNode
		stars[i] = starOver(n, self, newTree(leaders, func() map[int][]int { return ranks }, self, fan),
			&Options{MaxSums: sums, Window: window, Log: zap.NewNop(), ask: time.Minute})
		stars[i].subject = func(to string) string { return to }
		if err := stars[i].listen(); err != nil {
			t.Fatal(err)
		}
	}
	return n, stars
}

// advance posts pass on all nodes, and waits for the total of the pass that is late passes older.
func advance(t testing.TB, n *simulated, stars []*star, pass uint64, late int, c solver.Contribution) {
	t.Helper()
	for _, s := range stars {
		if err := s.post(pass, c); err != nil {
			t.Fatal(err)
		}
	}
	n.deliver()
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

// TestMessages counts messages: one for each node and batch of passes on the way up, and one for each batch on the way
// down. No leader gets more than treeFan of them for a pass.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ nodes, window, messages, root int }{
		{2, 17, 1, 1}, {16, 17, 15, 15}, {64, 17, 63, 63}, {65, 17, 64, 63}, {512, 17, 511, 63}, {512, 33, 511, 63},
	} {
		n, stars := simulate(t, c.nodes, 8, 1, c.window, treeFan)
		one := solver.Contribution{Sums: []solver.Sum{{Limbs: [3]uint64{1}}}}
		const passes = 64
		for pass := range uint64(passes) {
			advance(t, n, stars, pass, c.window-1, one)
		}
		batches, all := passes/(c.window/8), 0
		for to, count := range n.messages {
			all += count
			if strings.Trim(to, "0123456789") == "" && count > batches*treeFan {
				t.Errorf("%+v: leader %s got %d messages in %d batches", c, to, count, batches)
			}
		}
		if root, totals := n.messages["0"], n.messages["all"]; root != batches*c.root || totals != batches ||
			all != batches*(c.messages+1) {
			t.Errorf("%+v: %d messages for %d batches, %d of them to the root and %d totals", c, all, batches, root,
				totals)
		}
	}
}

// BenchmarkSimulation measures the work of all leaders together for a pass, and that of the root for the messages of
// others, without a network: nodes of 8 ranks, with and without a tree.
func BenchmarkSimulation(b *testing.B) {
	for _, nodes := range []int{2, 16, 64, 128, 512, 1250} {
		for _, fan := range []int{treeFan, 1024} {
			if fan > treeFan && nodes <= treeFan+1 {
				continue
			}
			for _, sums := range []int{1, 16} {
				for _, window := range []int{2, 33} {
					b.Run(fmt.Sprintf("nodes=%d/below=%d/sums=%d/window=%d", nodes, fan, sums, window),
						func(b *testing.B) { benchmarkSimulation(b, nodes, fan, sums, window) })
				}
			}
		}
	}
}

func benchmarkSimulation(b *testing.B, nodes, fan, sums, window int) {
	const perNode = 8
	n, stars := simulate(b, nodes, perNode, sums, window, fan)
	c := solver.Contribution{Sums: make([]solver.Sum, sums)}
	c.Sums[0].Limbs[0] = 1
	pass := uint64(0)
	for b.Loop() {
		advance(b, n, stars, pass, window-1, c)
		pass++
	}
	for unit, x := range map[string]float64{
		"root-ns/pass":       float64(n.root.Nanoseconds()),
		"root-messages/pass": float64(n.messages["0"]),
		"ns/rank/pass":       float64(b.Elapsed().Nanoseconds()) / float64(perNode*nodes),
		"B/rank/pass":        float64(n.bytes) / float64(perNode*nodes),
	} {
		b.ReportMetric(x/float64(pass), unit)
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
