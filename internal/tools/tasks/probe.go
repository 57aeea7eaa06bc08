package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/rank"
	"jacobi/internal/tools/probe"
	"jacobi/solver"
)

// probing is a rank that takes part in a probe.
type probing struct {
	*rank.Member
	request probe.Request
	show    func(probe.Report) error
}

// Probe measures the machines for launcher probe. The first rank of each node measures, one part after the other, while
// the others wait. Rank 0 publishes the reports or, where no launcher listens, gives them to show.
func Probe(request probe.Request, show func(probe.Report) error) rank.Task {
	return func(ctx context.Context, m *rank.Member) (solver.Result, error) {
		return solver.Result{}, probing{m, request, show}.run(ctx)
	}
}

func (p probing) run(ctx context.Context) error {
	ctx, cancel := awake.WithTimeout(ctx, probe.Limit)
	defer cancel()
	self, nodes := p.Comm.Self().Rank, nodesOf(p.Comm.Members())
	var m *probe.Machine
	if node := slices.IndexFunc(nodes, func(ranks []int) bool { return ranks[0] == self }); node >= 0 {
		var err error
		if m, err = p.machine(ctx, nodes, node); err != nil {
			return err
		}
	}
	if err := p.Comm.Barrier(ctx, "machines"); err != nil {
		return err
	}
	reports := 0
	for _, part := range p.request.Parts() {
		n, err := p.measure(ctx, m, part)
		if err != nil {
			return err
		}
		reports += n
	}
	if self == 0 {
		err := p.Comm.Publish(roster.Event{Kind: roster.Finished, Report: strconv.AppendInt(nil, int64(reports), 10)})
		if err != nil {
			return err
		}
	}
	return p.Comm.Barrier(ctx, "end")
}

// nodesOf returns the ranks of each node, in the order of their lowest ranks.
func nodesOf(members []roster.Member) (nodes [][]int) {
	known := map[string]int{}
	for _, m := range members {
		key := m.Host + " " + m.NodeID()
		if m.NodeID() == "" { // it is not known who else is there
			key = fmt.Sprint(m.Rank)
		}
		at, ok := known[key]
		if !ok {
			at = len(nodes)
			known[key], nodes = at, append(nodes, nil)
		}
		nodes[at] = append(nodes[at], m.Rank)
	}
	return nodes
}

// machine opens the devices of a node and starts its echo.
func (p probing) machine(ctx context.Context, nodes [][]int, node int) (*probe.Machine, error) {
	m := &probe.Machine{Host: p.Comm.Self().Host, Node: node, DType: p.Config.Grid.DType}
	for _, ranks := range nodes {
		m.Nodes = append(m.Nodes, p.Comm.Member(ranks[0]).Host)
	}
	m.OpenGPUs(p.Config.Device.Backend)
	p.OnClose(m.Close)
	if !p.Connected() {
		return m, nil
	}
	m.Echo = func(node int) string { return p.Comm.Subject(fmt.Sprintf("echo.%d", node)) }
	m.Dial = func(ctx context.Context) (pubsub.Conn, func(), error) {
		conn, err := p.Dial(ctx)
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
	conn, closeConn, err := m.Dial(ctx)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { closeConn(); return nil })
	stop, err := probe.StartEcho(conn, m.Echo(m.Node))
	if err != nil {
		return nil, err
	}
	p.OnClose(stop)
	return m, conn.FlushWithContext(ctx)
}

// measure measures one part on each node. On rank 0 it returns when all nodes have measured it, with the number of
// their reports.
func (p probing) measure(ctx context.Context, m *probe.Machine, part probe.Part) (reports int, err error) {
	if p.Comm.Self().Rank == 0 {
		if err := p.tell(probe.Event{Begins: part.Name}); err != nil {
			return 0, err
		}
	}
	var mine *probe.Report
	if m != nil {
		mine = new(part.Run(ctx, m))
	}
	all, err := roster.GatherOn(ctx, p.Comm, "probe", mine)
	if err != nil {
		return 0, err
	}
	for _, r := range all {
		if r == nil {
			continue
		}
		if err := p.tell(probe.Event{Report: r}); err != nil {
			return 0, err
		}
		reports++
	}
	return reports, nil
}

// tell publishes an event of the probe, and shows it where no launcher does.
func (p probing) tell(e probe.Event) error {
	switch {
	case !p.Launched && e.Report != nil:
		return p.show(*e.Report)
	case !p.Launched:
		return nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return p.Comm.Publish(roster.Event{Kind: roster.Probed, Report: data})
}
