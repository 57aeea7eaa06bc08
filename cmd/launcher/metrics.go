package main

import (
	"context"
	"net"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/run/launch"
)

// serveNodeMetrics opens the server of launcher node --metrics; nil without that flag.
func serveNodeMetrics(at string, scr *screen) (*metrics.Node, *metrics.Server, error) {
	if at == "" {
		return nil, nil, nil
	}
	if host, port, err := net.SplitHostPort(at); err == nil && host == "" {
		at = net.JoinHostPort("127.0.0.1", port)
	}
	node := metrics.NewNode()
	s, err := metrics.ListenNode(at, node)
	if err == nil {
		scr.Say("metrics: " + s.URL())
	}
	return node, s, err
}

// measuredRanks adds the ranks that an agent starts to the metrics of its node; a nil node has none.
type measuredRanks struct {
	node *metrics.Node
	conn *wire.Conn // of the agent
	log  *zap.Logger
}

// prepare returns before with the ranks of a run added to the metrics until they have ended. A fault in that is a
// warning: the run goes on without.
func (m measuredRanks) prepare(before launch.Prepare) launch.Prepare {
	if m.node == nil {
		return before
	}
	return func(ctx context.Context, spec *launch.Spec) (func(), error) {
		done, err := before(ctx, spec)
		if err != nil {
			return nil, err
		}
		ended, err := m.begin(ctx, spec)
		if err != nil {
			m.log.Warn("ranks without metrics", zap.String("run", spec.Ranks[0].RunID), zap.Error(err))
			return done, nil
		}
		return func() {
			ended()
			if done != nil {
				done()
			}
		}, nil
	}
}

// begin makes the ranks of spec tell their statistics, and passes these on to the metrics.
func (m measuredRanks) begin(ctx context.Context, spec *launch.Spec) (ended func(), err error) {
	var cfg configs.Planned
	env, err := configs.Amend(spec.Env, func(s *configs.Start) { cfg, s.Stats = s.Planned, true })
	if err != nil {
		return nil, err
	}
	id := spec.Ranks[0].RunID
	conn, err := m.conn.OfRun(cfg.NATS.SecretFile, id)
	if err != nil {
		return nil, err
	}
	var ranks []int
	for _, r := range spec.Ranks {
		ranks = append(ranks, r.Rank)
	}
	run := m.node.Begin(id, metrics.InfoOf(cfg.Config, cfg.Working()))
	stop, err := roster.WatchRanks(ctx, conn, id, ranks, run.Event)
	if err != nil {
		m.node.End(id, run, func() {})
		return nil, err
	}
	spec.Env = env
	return func() { m.node.End(id, run, stop) }, nil
}
