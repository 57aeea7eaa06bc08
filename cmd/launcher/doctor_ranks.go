package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"jacobi/internal/examine"
	"jacobi/internal/launch"
	"jacobi/internal/roster"
)

// collected is a progress that collects the findings that ranks publish when one of them fails.
type collected struct{ ranks []examine.Rank }

func (c *collected) event(e roster.Event) {
	var r examine.Rank
	if e.Kind == roster.Examined && e.Rank >= 0 && e.Rank < len(c.ranks) && json.Unmarshal(e.Report, &r) == nil {
		c.ranks[e.Rank] = r
	}
}

func (c *collected) close() {}

// conclude adds the findings of the ranks.
func (d *diagnosis) conclude(p *plan, out launch.Outcome, c *collected) error {
	if out.Err == nil && out.ExitCode() != launch.ExitOK {
		return exitError{out.ExitCode()}
	}
	ranks := c.ranks
	if out.Err == nil {
		if err := json.Unmarshal(out.Report, &ranks); err != nil {
			return fmt.Errorf("the ranks were ready to sweep, but their findings were lost: %w", err)
		}
	}
	known := map[string]bool{} // several ranks may report the same fault
	for _, r := range ranks {
		if r.Fault != "" && !r.Consequence && !known[r.Fault] {
			known[r.Fault] = true
			d.fault(fmt.Errorf("rank %d on %s: %s", r.Rank, p.ranks[r.Rank].Host, r.Fault),
				"correct it on that host, or run elsewhere")
		}
	}
	if out.Err != nil && len(d.Faults) == 0 {
		d.fault(out.Err, "correct it on that host, or run elsewhere; -v shows the output of the ranks")
	}
	d.Ranks = slices.DeleteFunc(ranks, func(r examine.Rank) bool { return r.Node.Version == "" })
	d.nodes(p)
	d.weigh()
	return nil
}

// nodes combines the findings of the ranks of each node.
func (d *diagnosis) nodes(p *plan) {
	for _, host := range p.names() {
		n := nodeFindings{Host: host, Reached: "ssh"}
		switch {
		case p.agents != nil:
			n.Reached = "agent"
		case p.here[host]:
			n.Reached = "this machine"
		}
		for _, r := range d.Ranks {
			if p.ranks[r.Rank].Host != host {
				continue
			}
			if n.Ranks == nil {
				n.Node = r.Node
			}
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
		if n.Ranks != nil {
			d.Nodes = append(d.Nodes, n)
		}
	}
}
