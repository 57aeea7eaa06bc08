package reduce

import (
	"maps"
	"slices"
	"testing"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
)

// The lowest rank of a node leads it, except for ranks that cannot map its segment or share no memory.
func TestNodes(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []string // by rank; "" shares no memory
		alone []int
		each  bool
		want  map[int][]int
	}{
		"one":       {nodes: []string{"a", "a", "a"}, want: map[int][]int{0: {0, 1, 2}}},
		"in turn":   {nodes: []string{"a", "b", "a", "b"}, want: map[int][]int{0: {0, 2}, 1: {1, 3}}},
		"no memory": {nodes: []string{"a", "", "", "a"}, want: map[int][]int{0: {0, 3}, 1: {1}, 2: {2}}},
		"each":      {nodes: []string{"a", "a", "b"}, each: true, want: map[int][]int{0: {0}, 1: {1}, 2: {2}}},
		"one alone": {nodes: []string{"a", "a", "a"}, alone: []int{1}, want: map[int][]int{0: {0, 2}, 1: {1}}},
		"many alone": {nodes: []string{"a", "a", "b", "b"}, alone: []int{3, 2},
			want: map[int][]int{0: {0, 1}, 2: {2}, 3: {3}}},
		"leader, too": {nodes: []string{"a", "a"}, alone: []int{0, 1}, want: map[int][]int{0: {0}, 1: {1}}},
	} {
		var members []roster.Member
		for r, node := range c.nodes {
			m := roster.Member{Node: shm.Node{Boot: node}}
			m.LocalRank = r // so that ranks of one node make a group
			members = append(members, m)
		}
		n := newNodes(roster.GroupsOf(members), c.alone, c.each)
		if got := n.leaders(); !slices.Equal(got, slices.Sorted(maps.Keys(c.want))) {
			t.Errorf("%s: leaders %v, nodes %v", name, got, c.want)
		}
		for leader, ranks := range c.want {
			if got := n.ranks(leader); !slices.Equal(got, ranks) {
				t.Errorf("%s: ranks of leader %d: %v, want %v", name, leader, got, ranks)
			}
			for _, r := range ranks {
				if got := n.leader(r); got != leader {
					t.Errorf("%s: leader of rank %d: %d, want %d", name, r, got, leader)
				}
			}
		}
	}
}
