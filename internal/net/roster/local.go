package roster

import "jacobi/internal/base/shm"

// agreeLocal sets LocalRank and LocalSize of the members without them. It gives the free local ranks of a node to
// them in the order of ranks. Two ranks are on one node only if they share memory; the name of the host does not count.
// A rank whose node is not known is alone.
func agreeLocal(members []Member) {
	nodes := map[shm.Node][]*Member{}
	for i := range members {
		m := &members[i]
		if !InOneMemory(*m, *m) {
			m.LocalRank, m.LocalSize = max(0, m.LocalRank), max(1, m.LocalRank+1, m.LocalSize)
			continue
		}
		nodes[m.Node] = append(nodes[m.Node], m)
	}
	for _, here := range nodes {
		taken := map[int]bool{}
		for _, m := range here {
			taken[m.LocalRank] = true
		}
		next, size := 0, len(here)
		for _, m := range here {
			if m.LocalRank < 0 {
				for taken[next] {
					next++
				}
				m.LocalRank, taken[next] = next, true
			}
			size = max(size, m.LocalRank+1, m.LocalSize)
		}
		for _, m := range here {
			if m.LocalSize == 0 {
				m.LocalSize = size
			}
		}
	}
}
