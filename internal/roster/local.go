package roster

// agreeLocal gives the members that do not know it their place among the ranks of their node: in the order of ranks,
// where nothing is known, among the free numbers. Two ranks share a node if they have the same NodeID, never by the
// name of their host; a rank without a NodeID is alone.
func agreeLocal(members []Member) {
	nodes := map[string][]*Member{}
	for i := range members {
		m := &members[i]
		if m.NodeID == "" {
			m.LocalRank, m.LocalSize = max(0, m.LocalRank), max(1, m.LocalRank+1, m.LocalSize)
			continue
		}
		nodes[m.NodeID] = append(nodes[m.NodeID], m)
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
