package reduce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// nodes tells which ranks add their sums in shared memory, and who leads them: the lowest rank of those that share
// memory. A rank that cannot map its leader's segment leads itself. What a rank reads of it grows with the groups of
// the roster and with its own node, and not with the ranks.
type nodes struct {
	groups []roster.Group
	alone  []int            // ranks that cannot map their leader's segment, ascending
	each   bool             // every rank is a node of its own
	lowest map[shm.Node]int // the lowest rank of a node
}

func newNodes(groups []roster.Group, alone []int, each bool) *nodes {
	n := &nodes{groups: groups, alone: slices.Sorted(slices.Values(alone)), each: each, lowest: map[shm.Node]int{}}
	for i := range groups {
		first := &groups[i].First
		if _, known := n.lowest[first.Node]; !known {
			n.lowest[first.Node] = first.Rank
		}
	}
	return n
}

// apart reports whether every rank of g leads itself.
func (n *nodes) apart(g *roster.Group) bool { return n.each || !roster.InOneMemory(g.First, g.First) }

// group returns the group of a rank.
func (n *nodes) group(rank int) *roster.Group {
	at, _ := slices.BinarySearchFunc(n.groups, rank, func(g roster.Group, rank int) int {
		if g.End <= rank {
			return -1
		}
		return 1
	})
	return &n.groups[at]
}

// leader returns the leader of a rank.
func (n *nodes) leader(rank int) int { return n.leaderIn(n.group(rank), rank) }

func (n *nodes) leaderIn(g *roster.Group, rank int) int {
	if n.apart(g) {
		return rank
	}
	if _, alone := slices.BinarySearch(n.alone, rank); alone {
		return rank
	}
	return n.lowest[g.First.Node]
}

// leaders returns the leaders of all nodes, ascending.
func (n *nodes) leaders() []int {
	leaders := slices.Clone(n.alone)
	for i := range n.groups {
		g := &n.groups[i]
		if !n.apart(g) {
			leaders = append(leaders, n.lowest[g.First.Node])
			continue
		}
		for r := g.First.Rank; r < g.End; r++ {
			leaders = append(leaders, r)
		}
	}
	slices.Sort(leaders)
	return slices.Compact(leaders)
}

// ranks returns the ranks of a leader's node, ascending.
func (n *nodes) ranks(leader int) (ranks []int) {
	home := n.group(leader)
	if n.apart(home) {
		return []int{leader}
	}
	for i := range n.groups {
		g := &n.groups[i]
		for r := g.First.Rank; r < g.End && g.First.Node == home.First.Node; r++ {
			if n.leaderIn(g, r) == leader {
				ranks = append(ranks, r)
			}
		}
	}
	return ranks
}

// byLeader returns the ranks of all nodes, by leader. It takes time for every rank of the run.
func (n *nodes) byLeader() map[int][]int {
	all := map[int][]int{}
	for i := range n.groups {
		g := &n.groups[i]
		for r := g.First.Rank; r < g.End; r++ {
			leader := n.leaderIn(g, r)
			all[leader] = append(all[leader], r)
		}
	}
	return all
}

// hub adds the contributions of a leader's node and of the subtrees below it (see tree). At the root the sum is the
// total; elsewhere the leader contributes it to its parent.
type hub struct {
	star  *star
	below map[int]subtree

	mu    sync.Mutex
	next  uint64 // first pass without a sum
	slots []hubSlot
}

// hubSlot is one pass. It collects contributions until all have arrived.
type hubSlot struct {
	pass uint64
	have map[int]bool  // leaders that contributed
	gone map[int][]int // by leader: the missing ranks of its subtree, as the leader last named them
	sum  solver.Contribution
}

func newHub(s *star, below map[int]subtree) *hub {
	h := &hub{star: s, below: below, slots: make([]hubSlot, s.window.ring())}
	for i := range h.slots {
		h.slots[i] = hubSlot{pass: uint64(i), have: map[int]bool{}, gone: map[int][]int{}}
	}
	return h
}

func (h *hub) slot(pass uint64) *hubSlot { return &h.slots[h.star.window.slot(pass)] }

// check returns an error for a frame that no leader below sends.
func (h *hub) check(f frame) error {
	if _, leads := h.below[f.rank]; !leads || f.rank == h.star.self || f.kind == total {
		return fmt.Errorf("a frame of kind %d from rank %d, which leads no other node", f.kind, f.rank)
	}
	for _, rank := range f.waiting {
		if !slices.Contains(h.below[f.rank].ranks, rank) {
			return fmt.Errorf("rank %d waits for rank %d, which is not on its node or below", f.rank, rank)
		}
	}
	return nil
}

// answer says what add made of a frame.
type answer uint8

const (
	nothing  answer = iota
	complete        // it was the last contribution to its pass
	again           // the sender asks again
)

// add enters the contribution or the list of missing ranks of a leader. Once a pass is complete, it returns the sum.
func (h *hub) add(f frame) (answer, solver.Contribution, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slot := h.slot(f.pass)
	if f.pass >= h.next+uint64(h.star.window) || f.pass < slot.pass {
		return nothing, solver.Contribution{}, nil // outside the passes that a leader can be at
	}
	if f.pass > slot.pass {
		clear(slot.have)
		clear(slot.gone)
		slot.pass = f.pass
	}
	if f.kind == pending {
		slot.gone[f.rank] = f.waiting
	}
	if f.kind == pending || slot.have[f.rank] {
		return again, solver.Contribution{}, nil
	}
	if err := merge(&slot.sum, len(slot.have) == 0, f.pass, f.rank, f.c); err != nil {
		return nothing, solver.Contribution{}, err
	}
	slot.have[f.rank] = true
	if len(slot.have) < len(h.below) {
		return nothing, solver.Contribution{}, nil
	}
	for n := h.slot(h.next); n.pass == h.next && len(n.have) == len(h.below); n = h.slot(h.next) {
		h.next++ // only past complete passes: a later one may be complete first
	}
	return complete, solver.Contribution{Sums: slices.Clone(slot.sum.Sums), Flags: slot.sum.Flags}, nil
}

// missing returns the ranks of this node and below that have not contributed to pass, as far as is known. If a leader
// has not named the missing ranks below it, it may be missing itself, and missing returns the ranks of its node.
func (h *hub) missing(pass uint64) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	slot := h.slot(pass)
	var ranks []int
	for leader, below := range h.below {
		switch {
		case slot.pass == pass && slot.have[leader]:
		case slot.pass == pass && slot.gone[leader] != nil:
			ranks = append(ranks, slot.gone[leader]...)
		default:
			ranks = append(ranks, below.node...)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// leader is the path of a rank that connects its node to the others. A goroutine waits for the node's ranks, so that
// the node's contribution is sent as soon as the last of them has posted.
type leader struct {
	star   *star
	node   *node
	passes chan uint64 // posted by this rank
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newLeader(s *star, n *node) *leader {
	ctx, cancel := context.WithCancel(context.Background())
	l := &leader{star: s, node: n, passes: make(chan uint64, s.window), cancel: cancel}
	s.onTotal = n.putTotal
	s.onAsk = func(pass uint64) {
		if gone := s.missing(pass); len(gone) > 0 {
			n.setHint(pass, gone[0])
		}
	}
	l.done.Go(func() {
		if err := l.pump(ctx); err != nil && ctx.Err() == nil {
			s.fail(err)
		}
	})
	return l
}

// pump sends the node's contributions to the root, pass by pass.
func (l *leader) pump(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case pass := <-l.passes:
			c, err := l.collect(ctx, pass)
			if err != nil {
				return err
			}
			if err := l.star.contribute(pass, c); err != nil {
				return err
			}
		}
	}
}

// collect waits for the node's ranks. While it waits, it tells the root which of them are missing.
func (l *leader) collect(ctx context.Context, pass uint64) (solver.Contribution, error) {
	for pause := l.star.ask; ; pause = min(2*pause, lastAsk) {
		c, err := l.node.wait(ctx, pass, time.Now().Add(pause))
		if !errors.Is(err, errLate) {
			return c, err
		}
		if err := l.star.sendMissing(pass, l.node.missing(pass)); err != nil {
			return solver.Contribution{}, err
		}
	}
}

func (l *leader) post(pass uint64, c solver.Contribution) error {
	l.star.announce(pass)
	if err := l.node.post(pass, c); err != nil {
		return err
	}
	l.passes <- pass // has room: at most window passes are not waited for
	return nil
}

func (l *leader) wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	return l.star.wait(ctx, pass, deadline)
}

func (l *leader) missing(pass uint64) []int {
	if gone := l.node.missing(pass); gone != nil {
		return gone
	}
	return l.star.missing(pass)
}

func (l *leader) close() error {
	l.cancel()
	l.done.Wait()
	return errors.Join(l.star.close(), l.node.close())
}
