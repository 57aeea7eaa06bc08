package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/agent"
)

// findAgents asks the agents at the server of cfg for slots. While it waits, it reports that to say.
func findAgents(ctx context.Context, cfg configs.Config, wait time.Duration, say func(string)) ([]agent.Offer, error) {
	if wait <= 0 {
		return nil, fmt.Errorf("--wait %v: must be a positive duration, as in 30s", wait)
	}
	conn, err := ConnectAgents(ctx, cfg.NATS, agentsClient, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	offers, err := agent.Find(ctx, conn, cfg.Working(), wait, func(there string) {
		say(fmt.Sprintf("waiting up to %v for %s: %s", wait, english.Plural(cfg.Working(), "slot", ""), there))
	})
	if err != nil {
		return nil, fmt.Errorf("--nodes: %w", err)
	}
	return offers, nil
}

// agentsClient is the name of a launcher's connection to its agents.
const agentsClient = "jacobi launcher (nodes)"

// ConnectAgents connects to the server of the agents. name describes the client to the server.
func ConnectAgents(ctx context.Context, n configs.NATS, name string, log *zap.Logger) (*wire.Conn, error) {
	if n.URL == "" {
		return nil, errors.New(`nats.url "": must name the server where the agents are`)
	}
	conn, err := wire.Connect(ctx, wire.Options{Server: n, RunID: agent.Group, Name: name, Timeout: ConnectTimeout,
		Logger: log})
	if err != nil {
		return nil, fmt.Errorf("nats.url: %w", err)
	}
	return conn, nil
}
