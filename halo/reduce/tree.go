package reduce

import "slices"

// treeFan is the largest number of leaders that contribute to one leader. Up to 64 nodes contribute to the root.
const treeFan = 63

// tree is the place of a leader among the leaders of all nodes. In ascending order, leader 0 is the root, which is
// rank 0, and leader i > 0 contributes to leader (i-1)/fan.
type tree struct {
	parent int             // -1 for the root
	below  map[int]subtree // this node alone, and every subtree below it, by leader; nil if there is none below
}

// subtree is the part of a tree below and with a leader.
type subtree struct {
	node  []int // the ranks of the leader's node
	ranks []int // all ranks, ascending
}

// newTree returns the place of leader self, given all leaders, ascending, and the ranks of every leader's node, for
// which only a leader with others below it asks.
func newTree(leaders []int, byLeader func() map[int][]int, self, fan int) tree {
	me, _ := slices.BinarySearch(leaders, self)
	t := tree{parent: -1}
	if me > 0 {
		t.parent = leaders[(me-1)/fan]
	}
	if me*fan+1 >= len(leaders) {
		return t
	}
	nodes := byLeader()
	t.below = map[int]subtree{self: {nodes[self], nodes[self]}}
	for child := me*fan + 1; child <= min(me*fan+fan, len(leaders)-1); child++ {
		t.below[leaders[child]] = subtree{nodes[leaders[child]], ranksBelow(nodes, leaders, child, fan)}
	}
	return t
}

// ranksBelow returns the ranks of the subtree of the leader with index i, ascending.
func ranksBelow(nodes map[int][]int, leaders []int, i, fan int) []int {
	ranks := slices.Clone(nodes[leaders[i]])
	for child := i*fan + 1; child <= min(i*fan+fan, len(leaders)-1); child++ {
		ranks = append(ranks, ranksBelow(nodes, leaders, child, fan)...)
	}
	slices.Sort(ranks)
	return ranks
}
