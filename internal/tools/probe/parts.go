package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"jacobi/internal/base/suggest"
)

// Part is one kind of measurement. On each node one rank measures, while the others wait.
type Part struct {
	Name string
	Help string // one line for the help text
	// Measure returns what the part found on this node. A part that cannot run there returns a Result with NotRun.
	Measure func(ctx context.Context, m *Machine) (Result, error)
	// Draw returns a picture of the tables of a Result, as PNG; nil for a part without pictures.
	Draw func(tables []Table) ([]byte, error)
}

// Parts lists all parts in the order in which they run.
func Parts() []Part {
	return []Part{
		{Name: "devices", Help: "GPUs: identity, load, errors, clocks, links, near cores; which GPU a rank takes",
			Measure: devices},
		{Name: "copies", Help: "copies of the host's memory, between host and GPU (pinned, pageable), within a GPU",
			Measure: copies},
		{Name: "peers", Help: "access, bandwidth and latency between GPUs; shared memory between ranks",
			Measure: peers, Draw: drawPeers},
		{Name: "overlap", Help: "copy in, kernel, copy out: in turn, and overlapped in chunks on streams",
			Measure: overlap, Draw: drawOverlap},
		{Name: "nats", Help: "round trip and bandwidth to each node through the server of a run", Measure: natsPart},
		{Name: "sweep", Help: "passes on each GPU alone, or on the CPU; the exchange of halos alone", Measure: sweep},
		{Name: "transposes", Help: "a matrix transposed within a GPU, over several GPUs and on the CPU, step by step",
			Measure: transposes},
		{Name: "reductions", Help: "an array added within a GPU, over several GPUs and on the CPU, step by step",
			Measure: reductions},
	}
}

// Names returns the names of all parts.
func Names() []string {
	var names []string
	for _, p := range Parts() {
		names = append(names, p.Name)
	}
	return names
}

// choose returns the parts with the given names, all if there are none, in the order of Parts.
func choose(names []string) ([]Part, error) {
	if len(names) == 0 {
		return Parts(), nil
	}
	for _, n := range names {
		if slices.Contains(Names(), n) {
			continue
		}
		hint := ""
		if best, ok := suggest.Nearest(n, Names()); ok {
			hint = fmt.Sprintf("; did you mean %s?", best)
		}
		return nil, fmt.Errorf("part %q: allowed are %s%s", n, strings.Join(Names(), ", "), hint)
	}
	return slices.DeleteFunc(Parts(), func(p Part) bool { return !slices.Contains(names, p.Name) }), nil
}
