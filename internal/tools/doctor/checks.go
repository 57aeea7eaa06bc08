package doctor

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/view"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/examine"
	"jacobi/solver"
)

// Remedies.
const (
	correctKey = "correct the key or flag; launcher --dry-run prints all keys"
	fewerRanks = "ask for fewer ranks with -np, or give more places: --host, --hostfile, or agents (launcher node) " +
		"at nats.url"
	bothBuilt   = "build both programs (make build) and keep them in one folder"
	startServer = "start a server there, or correct nats.url and the key of its user: nats.password_file, creds, " +
		"nkey or cert, and ca"
	otherPort = "end the program that has the port, or name another address of this machine; port 0 is any free one"
	reachable = "ssh HOST has to work without a question, and both programs, of this version, to be there in " +
		"--remote-bin"
)

// checkSections checks the sections of cfg that need no plan and have no fault among faults. It serves a run whose keys
// or places allow no plan.
func checkSections(ctx context.Context, cfg configs.Config, faults []Finding) (more []Finding) {
	sound := func(sections ...string) bool {
		return !slices.ContainsFunc(slices.Concat(faults, more), func(f Finding) bool {
			return slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(f.What, s+".") })
		})
	}
	if sound("grid", "problem") {
		prob, err := problem.New(ctx, cfg)
		if err == nil {
			err = prob.Close()
		}
		more = append(more, faultsOf(err, plan.CorrectProblem)...)
	}
	if sound("output") && len(cfg.Output.Names()) > 0 {
		more = append(more, faultsOf(output.CheckDir(cfg.Output.Dir), plan.CorrectOutput)...)
	}
	if sound("nats") {
		more = append(more, checkServer(ctx, cfg.NATS)...)
	}
	if sound("metrics", "view") {
		more = append(more, checkPorts(cfg)...)
	}
	return more
}

// checkPorts opens the ports that the launcher would open for others, all at once as in a run, and closes them.
func checkPorts(cfg configs.Config) (faults []Finding) {
	if cfg.Metrics.Listen != "" {
		s, err := metrics.Listen(cfg.Metrics.Listen, metrics.NewRun())
		if err == nil {
			defer s.Close()
		}
		faults = append(faults, faultsOf(err, otherPort)...)
	}
	if cfg.View.Listen != "" {
		s, err := view.Listen(cfg.View.Listen)
		if err == nil {
			defer s.Close(0)
		}
		faults = append(faults, faultsOf(err, otherPort)...)
	}
	return faults
}

// checkServer tests the NATS server that the user named, if any.
func checkServer(ctx context.Context, n configs.NATS) []Finding {
	if n.URL == "" {
		return nil
	}
	conn, err := wire.Connect(ctx, wire.Options{Server: n, Name: "jacobi launcher (doctor)",
		Timeout: hosts.ConnectTimeout, Logger: zap.NewNop()})
	if err != nil {
		return faultsOf(fmt.Errorf("nats.url: %w", err), startServer)
	}
	conn.Close()
	return nil
}

// checkHosts tests whether the hosts answer.
func checkHosts(ctx context.Context, p *plan.Plan, m hosts.Means) []Finding {
	reached, err := hosts.Reach(ctx, p.Places, m)
	if err != nil {
		return faultsOf(err, reachable)
	}
	return faultsOf(reached.Close(), "check that the host is up")
}

// measureOutput measures output.dir; nil if the run writes no files.
func measureOutput(p *plan.Plan) (*examine.Place, error) {
	o := p.Config.Output
	if len(o.Names()) == 0 {
		return nil, nil
	}
	room, err := p.Room()
	if err != nil {
		return nil, err
	}
	place, err := examine.Place{Key: "output.dir", Dir: o.Dir, Needed: room.Bytes()}.Measure()
	if err != nil {
		return nil, fmt.Errorf("output.dir %q: %w", o.Dir, err)
	}
	return place, nil
}

// clockTolerance bounds the difference of two clocks. A larger one can invalidate certificates and disorder log lines.
const clockTolerance = time.Second

// weigh returns warnings of conditions that slow a run down or may end it later.
func weigh(nodes []Node, ranks []examine.Rank) (warnings []Finding) {
	for _, n := range nodes {
		if n.Threads > n.Cores {
			warnings = append(warnings, warning("start fewer ranks there, or set device.threads",
				"%s: %d threads of %s share %d cores", n.Host, n.Threads, roster.FormatRanks(n.Ranks), n.Cores))
		}
		if c := n.Clock; c != nil && math.Abs(c.Ahead)-c.Error > clockTolerance.Seconds() {
			warnings = append(warnings, warning("keep both clocks right by NTP: certificates are valid for a time",
				"%s: %v", n.Host, c))
		}
	}
	users := map[string][]int{} // ranks by UUID
	for _, r := range ranks {
		if id := gpuOf(r); id != "" {
			users[id] = append(users[id], r.Rank)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(users)) {
		if ranks := users[id]; len(ranks) > 1 {
			warnings = append(warnings, warning("start one rank a GPU, and give each container GPUs of its own",
				"%s share one GPU, %s", roster.FormatRanks(ranks), id))
		}
	}
	return warnings
}

// gpuOf returns the UUID of a rank's GPU; "" if it has none or has not reported it.
func gpuOf(r examine.Rank) string {
	if r.Report == nil || r.Report.GPU == nil {
		return ""
	}
	return r.Report.GPU.UUID
}

// Link is the link between a rank and the one below it.
type Link struct {
	Ranks [2]int
	output.LinkReport
	Access string // peer access between their GPUs, in words; "" if unknown
}

// Links returns the links of all ranks that have reported.
func (d Diagnosis) Links() (links []Link) {
	gpus := map[int]string{} // UUID by rank
	for _, r := range d.Ranks {
		gpus[r.Rank] = gpuOf(r)
	}
	for _, r := range d.Ranks {
		if r.Report == nil {
			continue
		}
		t, ok := r.Report.Transports[solver.Bottom.String()]
		if !ok {
			continue
		}
		l := Link{Ranks: [2]int{r.Rank, t.Neighbour}, LinkReport: t}
		if can, known := r.PeerAccess[gpus[t.Neighbour]]; known {
			l.Access = map[bool]string{true: "; peer access between the GPUs",
				false: "; no peer access between the GPUs"}[can]
		}
		links = append(links, l)
	}
	return links
}

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
		host := p.Placements[r.Rank].Host
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
