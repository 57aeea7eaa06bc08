package doctor

import (
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/examine"
)

// Node holds the findings of the ranks of one node.
type Node struct {
	Host    string `json:"host"`
	Reached string `json:"reached"` // this machine, ssh or agent
	Ranks   []int  `json:"ranks"`
	Threads int    `json:"threads"`      // CPU threads that its ranks keep busy
	Needed  int64  `json:"needed_bytes"` // memory that its ranks without GPUs need
	examine.Node
}

// nodes combines the findings of the ranks of each node.
func nodes(p *plan.Plan, ranks []examine.Rank) (all []Node) {
	byHost := map[string][]examine.Rank{}
	for _, r := range ranks {
		host := p.Ranks[r.Rank].Host
		byHost[host] = append(byHost[host], r)
	}
	for _, host := range p.Names() {
		if found := byHost[host]; len(found) > 0 {
			all = append(all, nodeOf(host, reachedBy(p.Places, host), found))
		}
	}
	return all
}

// reachedBy says how ranks on host are started.
func reachedBy(at hosts.Places, host string) string {
	switch {
	case at.Agents != nil:
		return "agent"
	case at.Here[host]:
		return "this machine"
	}
	return "ssh"
}

// nodeOf combines the findings of the ranks of one node, at least one.
func nodeOf(host, reached string, ranks []examine.Rank) Node {
	n := Node{Host: host, Reached: reached, Node: ranks[0].Node}
	for _, r := range ranks {
		n.Ranks = append(n.Ranks, r.Rank)
		n.NATSRoundTrip, n.Files = min(n.NATSRoundTrip, r.Node.NATSRoundTrip), max(n.Files, r.Node.Files)
		if r.Report == nil {
			continue
		}
		n.Threads += r.Report.Threads
		if r.Report.GPU == nil {
			n.Needed += r.Report.MemoryBytes
		}
	}
	return n
}
