package hosts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/agent"
)

// ConnectTimeout bounds each connection of a launcher to a NATS server.
const ConnectTimeout = 5 * time.Second

// Link is the launcher's connection to the NATS server of a run.
type Link struct {
	Conn *wire.Conn
	// Access holds, by host, the configuration with which its ranks connect to the same server.
	Access map[string]configs.NATS

	closeServer func() // ends the server if it serves this run only
}

// Close closes the connection and ends a server that serves this run only.
func (l *Link) Close() {
	l.Conn.Close()
	l.closeServer()
}

// Permitted returns the server's error if it has refused a subscription of the connection.
func (l *Link) Permitted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	if err := l.Conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("no answer from the NATS server: %w", err)
	}
	return l.Conn.Fault()
}

// Connect connects to the server that n names, or starts one for the run runID.
func (r *Reached) Connect(ctx context.Context, n configs.NATS, runID string, log *zap.Logger) (*Link, error) {
	s, err := r.server(n, runID, log)
	if err != nil {
		return nil, err
	}
	conn, err := wire.Connect(ctx, wire.Options{
		Server: s.own, RunID: runID, Name: "jacobi launcher", Timeout: ConnectTimeout, Logger: log,
	})
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%s%w", s.key, err)
	}
	return &Link{Conn: conn, Access: s.access, closeServer: s.close}, nil
}

// server is a NATS server that runs.
type server struct {
	own    configs.NATS            // the launcher's access
	access map[string]configs.NATS // the ranks' access, by host
	key    string                  // before errors: the key that names the server; "" if the launcher started it
	close  func()
}

// server returns the server that n names, or one that it starts for the run runID.
func (r *Reached) server(n configs.NATS, runID string, log *zap.Logger) (server, error) {
	if n.URL == "" {
		return r.ownServer(n, runID, log)
	}
	if n.SecretFile == "" { // other users may have access to the server
		n.SecretFile = configs.Inline(rand.Text())
	}
	access, err := r.sameServer(n)
	return server{own: n, access: access, key: "nats.url: ", close: func() {}}, err
}

// ownServer starts a server for this run. It listens on loopback only, unless ranks run elsewhere.
func (r *Reached) ownServer(n configs.NATS, runID string, log *zap.Logger) (server, error) {
	at, err := r.addresses(n.AdvertisedHosts())
	if err != nil {
		return server{}, fmt.Errorf("addresses of this machine: %w", err)
	}
	var all []string
	for _, list := range at {
		all = append(all, list...)
	}
	slices.Sort(all)
	srv, err := natsserver.Start(natsserver.Options{RunID: runID, Hosts: slices.Compact(all), Port: n.Port, Log: log})
	if err != nil {
		return server{}, err
	}
	access := map[string]configs.NATS{}
	for name := range r.ByName {
		access[name] = srv.NATS()
		if list := at[name]; list != nil {
			access[name] = srv.At(list...)
		}
	}
	return server{own: srv.NATS(), access: access, close: srv.Close}, nil
}

// addresses returns, by machine reached over ssh, the addresses at which it reaches this one: the advertised ones if
// there are any, else the address from which ssh came. If that address is not this machine's, because of a jump host or
// address translation, all addresses of this machine are returned.
func (r *Reached) addresses(advertised []string) (map[string][]string, error) {
	own, err := natsserver.Addresses()
	if err != nil {
		return nil, err
	}
	at := map[string][]string{}
	for name, client := range r.client {
		at[name] = addressesFor(client, own, advertised)
	}
	return at, nil
}

// addressesFor returns the addresses for a machine that sees this one at client. own are this machine's addresses.
func addressesFor(client string, own, advertised []string) []string {
	switch {
	case len(advertised) > 0:
		return advertised
	case slices.Contains(own, client):
		return []string{client}
	}
	return own
}

// sameServer returns n for all hosts. Other machines get the contents of its files, and agents the secret alone.
func (r *Reached) sameServer(n configs.NATS) (map[string]configs.NATS, error) {
	access := map[string]configs.NATS{}
	for name := range r.ByName {
		mine, err := n, error(nil)
		if r.agents != nil { // an agent has its own access to the server
			mine, err = configs.NATS{SecretFile: n.SecretFile}.Inlined()
		} else if _, far := r.client[name]; far {
			mine, err = n.Inlined()
		}
		if err != nil {
			return nil, err
		}
		access[name] = mine
	}
	return access, nil
}

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
