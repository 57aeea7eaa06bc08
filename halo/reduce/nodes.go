package reduce

import (
	"slices"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
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
