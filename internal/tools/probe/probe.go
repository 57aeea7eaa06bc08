// Package probe measures what the memories, links and network of the nodes of a run can do, for launcher probe.
//
//	parts.go      the list of parts, in the order in which they run
//	machine.go    what a part measures: the devices of one node, and the way to the others
//	result.go     what a part returns, and the same with its node, as it travels to the launcher
//	table.go      the tables of a result; ways.go: of ways to do the same work, such as sums
//	request.go    what a user asks for, as it travels to the ranks
//	expect.go     bounds for the acceptance of a machine
//	print.go      the terminal and JSON; picture.go: pictures
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
	"time"

	"jacobi/configs"
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

// Run measures one part on this node. It does not fail: a report says what went wrong.
func (p Part) Run(ctx context.Context, m *Machine) Report {
	r := Report{Part: p.Name, Host: m.Host, Node: m.Node}
	began := time.Now()
	result, err := p.Measure(ctx, m)
	if result.Data == nil && len(result.Tables) > 0 {
		result.Data = result.Tables
	}
	if err == nil && result.Data != nil {
		r.Data, err = json.Marshal(result.Data)
	}
	if err != nil {
		r.Fault = err.Error()
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			r.Fault = fmt.Sprint(context.Cause(ctx))
		}
	}
	r.Seconds = time.Since(began).Seconds()
	r.Text, r.NotRun, r.Findings, r.Figures = result.Text, result.NotRun, result.Findings, result.Figures
	return r
}
