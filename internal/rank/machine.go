package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"jacobi/internal/awake"
	"jacobi/internal/probe"
	"jacobi/internal/pubsub"
	"jacobi/internal/roster"
)

// probe measures this rank's machine for launcher probe, in place of a run. The first rank of each node measures, one
// part after the other, while the others wait. Rank 0 publishes the reports and gives them to Probed.
func (j *joined) probe(ctx context.Context, open *closers) (written, error) {
	ctx, cancel := awake.WithTimeout(ctx, probe.Limit)
	defer cancel()
	var m *probe.Machine
	if nodes := j.nodes(); nodes[j.nodeOf(j.id.Rank)] == j.id.Rank {
		var err error
		if m, err = j.machine(ctx, open, nodes); err != nil {
			return written{}, err
		}
	}
	if err := j.team.Barrier(ctx, "machines"); err != nil {
		return written{}, err
	}
	reports := 0
	for _, part := range j.Probe.Parts {
		n, err := j.measurePart(ctx, m, part)
		if err != nil {
			return written{}, err
		}
		reports += n
	}
	if j.id.Rank == 0 {
		err := j.team.Publish(roster.Event{Kind: roster.Finished, Report: strconv.AppendInt(nil, int64(reports), 10)})
		if err != nil {
			return written{}, err
		}
	}
	return written{}, j.team.Barrier(ctx, "end")
}

// nodes returns the rank that measures, for each node: the lowest one there.
func (j *joined) nodes() (first []int) {
	members := j.team.Members()
	for _, m := range members {
		if j.nodeOf(m.Rank) == len(first) {
			first = append(first, m.Rank)
		}
	}
	return first
}

// nodeOf returns the index of a rank's node, in the order of their lowest ranks.
func (j *joined) nodeOf(rank int) int {
	members := j.team.Members()
	key := func(m roster.Member) string {
		if m.NodeID() == "" { // it is not known who else is there
			return fmt.Sprint(m.Rank)
		}
		return m.Host + " " + m.NodeID()
	}
	known := map[string]int{}
	for _, m := range members {
		if _, ok := known[key(m)]; !ok {
			known[key(m)] = len(known)
		}
	}
	return known[key(members[rank])]
}

// machine opens the devices of this node and starts its echo.
func (j *joined) machine(ctx context.Context, open *closers, nodes []int) (*probe.Machine, error) {
	members := j.team.Members()
	m := &probe.Machine{Host: members[j.id.Rank].Host, Node: j.nodeOf(j.id.Rank), DType: j.Config.Grid.DType,
		Weight: j.Probe.Weight}
	for _, rank := range nodes {
		m.Nodes = append(m.Nodes, members[rank].Host)
	}
	for _, other := range members {
		if j.nodeOf(other.Rank) == m.Node {
			m.Ranks++
		}
	}
	m.OpenGPUs(j.Config.Device.Backend)
	open.add(m.Close)
	if j.conn == nil {
		return m, nil
	}
	m.Echo = func(node int) string { return j.team.Subject(fmt.Sprintf("echo.%d", node)) }
	m.Dial = func(ctx context.Context) (pubsub.Conn, func(), error) {
		conn, err := j.dialLink(ctx)
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
	conn, closeConn, err := m.Dial(ctx)
	if err != nil {
		return nil, err
	}
	open.add(func() error { closeConn(); return nil })
	stop, err := probe.StartEcho(conn, m.Echo(m.Node))
	if err != nil {
		return nil, err
	}
	open.add(stop)
	return m, conn.FlushWithContext(ctx)
}

// measurePart measures one part on each node. On rank 0 it returns when all nodes have measured it, with the number of
// their reports.
func (j *joined) measurePart(ctx context.Context, m *probe.Machine, part probe.Part) (reports int, err error) {
	if j.id.Rank == 0 {
		if err := j.tellProbe(probe.Event{Begins: part.Name}); err != nil {
			return 0, err
		}
	}
	var mine []byte
	if m != nil {
		if mine, err = json.Marshal(part.Run(ctx, m)); err != nil {
			return 0, err
		}
	}
	all, err := j.team.Gather(ctx, "probe", mine)
	if err != nil {
		return 0, err
	}
	for _, data := range all {
		if len(data) == 0 {
			continue
		}
		var r probe.Report
		if err := json.Unmarshal(data, &r); err != nil {
			return 0, fmt.Errorf("report of %s: %w", part.Name, err)
		}
		if err := j.tellProbe(probe.Event{Report: &r}); err != nil {
			return 0, err
		}
		reports++
	}
	return reports, nil
}

// tellProbe publishes an event of the probe, and shows it where no launcher does.
func (j *joined) tellProbe(e probe.Event) error {
	if !j.launched() {
		return j.Probed(e)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return j.team.Publish(roster.Event{Kind: roster.Probed, Report: data})
}
