// Package probe measures what the memories, links and network of the nodes of a run can do, for launcher probe.
//
//	probe.go      the list of parts, in the order in which they run, and what a user asks for
//	machine.go    what a part measures: the devices of one node, and the way to the others
//	result.go     what a part returns, as tables too, and the same with its node, as it travels to the launcher
//	print.go      the terminal and JSON, and bounds for the acceptance of a machine
//	gpu/          opening and timing GPUs
//
// Every part has a file of its name. internal/tools/tasks runs the parts, one after the other, on one rank of each
// node.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/suggest"
)

// Limit bounds a whole probe. By default it takes less than a minute.
const Limit = 10 * time.Minute

// Config returns the configuration of a probe: that of the run without its problem and its files. A probe needs ranks,
// devices and the server alone.
func Config(c configs.Config) configs.Config {
	d := configs.Default()
	d.Run, d.Device, d.NATS, d.Log, d.Halo = c.Run, c.Device, c.NATS, c.Log, c.Halo
	d.Halo.Depth = 0
	d.Grid.DType, d.Grid.NX, d.Grid.NY = c.Grid.DType, 1024, max(1024, 64*c.Run.Ranks)
	d.Output = configs.Output{Dir: c.Output.Dir, PictureScale: d.Output.PictureScale}
	return d
}

// Part is one kind of measurement. On each node one rank measures, while the others wait.
type Part struct {
	Name string
	Help string // one line for the help text
	// measure returns what the part found on this node. A part that cannot run there returns a Result with NotRun.
	measure func(ctx context.Context, m *Machine) (Result, error)
}

// Parts lists all parts in the order in which they run.
func Parts() []Part {
	return []Part{
		{"devices", "GPUs: identity, load, errors, clocks, links, near cores", devices},
		{"copies", "copies of the host's memory, between host and GPU (pinned, pageable), within a GPU", copies},
		{"peers", "access, bandwidth and latency between GPUs; shared memory between ranks", peers},
		{"nats", "round trip and bandwidth to each node through the server of a run", natsPart},
		{"sweep", "passes on each GPU alone, or on the CPU; the exchange of halos alone", sweep},
	}
}

// Names returns the names of all parts.
func Names() (names []string) {
	for _, p := range Parts() {
		names = append(names, p.Name)
	}
	return names
}

// Run measures one part on this node. It does not fail: a report says what went wrong.
func (p Part) Run(ctx context.Context, m *Machine) Report {
	began := time.Now()
	r, err := p.measure(ctx, m)
	if r.Details == nil && len(r.Tables) > 0 {
		r.Details = r.Tables
	}
	if err == nil && r.Details != nil {
		r.Data, err = json.Marshal(r.Details)
	}
	if err != nil {
		r.Fault = err.Error()
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			r.Fault = fmt.Sprint(context.Cause(ctx))
		}
	}
	r.Part, r.Host, r.Node, r.Seconds = p.Name, m.Host, m.Node, time.Since(began).Seconds()
	return r.Report
}

// Request says what to measure: names of parts, in the order of Parts.
type Request []string

// NewRequest returns a request for the parts with the given names, all parts if there are none or the only one is
// "all".
func NewRequest(names []string) (Request, error) {
	if len(names) == 0 || len(names) == 1 && names[0] == "all" {
		names = Names()
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
	return slices.DeleteFunc(Names(), func(n string) bool { return !slices.Contains(names, n) }), nil
}

// Parts returns the parts of the request.
func (r Request) Parts() []Part {
	return slices.DeleteFunc(Parts(), func(p Part) bool { return !slices.Contains(r, p.Name) })
}
