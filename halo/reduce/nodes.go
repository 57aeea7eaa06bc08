package reduce

import (
	"context"
	"errors"
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
			s.cancel(err)
		}
	})
	return l
}

// pump contributes what the node has, pass by pass.
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
			l.star.post(pass, c)
		}
	}
}

// collect waits for the node's ranks. While it waits, it tells which of them are missing.
func (l *leader) collect(ctx context.Context, pass uint64) (solver.Contribution, error) {
	for pause := l.star.ask; ; pause = min(2*pause, lastAsk) {
		c, err := l.node.wait(ctx, pass, time.Now().Add(pause))
		if !errors.Is(err, errLate) {
			return c, err
		}
		if err := l.star.lacks(pass, l.node.missing(pass)); err != nil {
			return solver.Contribution{}, err
		}
	}
}

func (l *leader) post(pass uint64, c solver.Contribution) {
	l.node.post(pass, c)
	l.passes <- pass // has room: at most window passes are not waited for
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
