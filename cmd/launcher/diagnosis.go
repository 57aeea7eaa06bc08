package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"jacobi/internal/examine"
	"jacobi/internal/output"
	"jacobi/internal/roster"
	"jacobi/internal/show"
	"jacobi/solver"
)

// diagnosis says whether a run would start.
type diagnosis struct {
	Starts   bool           `json:"starts"`
	Run      string         `json:"run,omitempty"`      // description; "" if the run could not be planned
	Expected string         `json:"expected,omitempty"` // expected end of the run
	Version  string         `json:"version"`            // version of this launcher
	Faults   []finding      `json:"faults"`
	Warnings []finding      `json:"warnings"`
	Nodes    []nodeFindings `json:"nodes"`
	Ranks    []examine.Rank `json:"ranks"`
	// Output is output.dir, as this machine sees it; nil if the run writes no files.
	Output *examine.Place `json:"output,omitempty"`
}

// finding is a fault or a warning with its remedy.
type finding struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// nodeFindings are the findings of the ranks of one node.
type nodeFindings struct {
	Host    string `json:"host"`
	Reached string `json:"reached"` // this machine, ssh or agent
	Ranks   []int  `json:"ranks"`
	Threads int    `json:"threads"`      // CPU threads that its ranks keep busy
	Needed  int64  `json:"needed_bytes"` // memory that its ranks without GPUs need
	examine.Node
}

// fault adds a fault for each line of err.
func (d *diagnosis) fault(err error, do string) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(show.Values(err.Error()), "\n") {
		if !slices.ContainsFunc(d.Faults, func(f finding) bool { return f.What == line }) {
			d.Faults = append(d.Faults, finding{line, do})
		}
	}
}

func (d *diagnosis) warn(do, format string, args ...any) {
	d.Warnings = append(d.Warnings, finding{fmt.Sprintf(format, args...), do})
}

// clockTolerance bounds the difference of two clocks. A larger one can invalidate certificates and disorder log lines.
const clockTolerance = time.Second

// weigh adds warnings of conditions that slow a run down or may end it later.
func (d *diagnosis) weigh() {
	for _, n := range d.Nodes {
		if n.Threads > n.Cores {
			d.warn("start fewer ranks there, or set device.threads", "%s: %d threads of %s share %d cores", n.Host,
				n.Threads, roster.FormatRanks(n.Ranks), n.Cores)
		}
		if c := n.Clock; c != nil && math.Abs(c.Ahead)-c.Error > clockTolerance.Seconds() {
			d.warn("let both keep time by NTP: certificates have a begin and an end", "%s: %s", n.Host, clockText(c))
		}
	}
	users := map[string][]int{}
	for _, r := range d.Ranks {
		if r.Report != nil && r.Report.GPU != nil && r.Report.GPU.UUID != "" {
			users[r.Report.GPU.UUID] = append(users[r.Report.GPU.UUID], r.Rank)
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(users)) {
		if ranks := users[uuid]; len(ranks) > 1 {
			d.warn("start one rank a GPU, and give each container GPUs of its own", "%s share one GPU, %s",
				roster.FormatRanks(ranks), uuid)
		}
	}
}

// link is the link between a rank and the one below it.
type link struct {
	ranks [2]int
	output.LinkReport
	access string // peer access between their GPUs, in words; "" if unknown
}

// links returns the links of all ranks that have reported.
func (d *diagnosis) links() (links []link) {
	gpus := map[int]string{} // UUID by rank
	for _, r := range d.Ranks {
		if r.Report != nil && r.Report.GPU != nil {
			gpus[r.Rank] = r.Report.GPU.UUID
		}
	}
	for _, r := range d.Ranks {
		if r.Report == nil {
			continue
		}
		t, ok := r.Report.Transports[solver.Bottom.String()]
		if !ok {
			continue
		}
		l := link{ranks: [2]int{r.Rank, t.Neighbour}, LinkReport: t}
		if can, known := r.PeerAccess[gpus[t.Neighbour]]; known {
			l.access = map[bool]string{true: "; peer access between the GPUs",
				false: "; no peer access between the GPUs"}[can]
		}
		links = append(links, l)
	}
	return links
}
