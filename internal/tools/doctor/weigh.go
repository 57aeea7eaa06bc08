package doctor

import (
	"maps"
	"math"
	"slices"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/tools/examine"
	"jacobi/solver"
)

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
