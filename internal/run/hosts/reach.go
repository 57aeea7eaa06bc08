package hosts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/agent"
	"jacobi/internal/run/launch"
)

// Reached are the machines of a run, connected and ready to start ranks.
type Reached struct {
	// ByName holds the machines by the names of the places.
	ByName map[string]launch.Host
	// client is, by machine reached over ssh, the address of this machine as seen from there; "" if unknown.
	client map[string]string
	// agents is the connection to the agents, if these are the hosts.
	agents *wire.Conn
}

// Means says how to reach machines.
type Means struct {
	SSH  launch.SSH     // other machines; Say is not used
	NATS configs.NATS   // the agents
	Here launch.Prepare // prepares this machine; an agent and a launcher at the other end of ssh prepare theirs
	Say  func(string)   // receives messages of ssh, with the name of the machine
}

// Reach connects to the machines of p: over ssh, or through their agents if p has any. This machine needs no
// connection. The error names all machines that cannot be reached.
func Reach(ctx context.Context, p Places, m Means) (*Reached, error) {
	if p.Agents != nil {
		return reachAgents(ctx, p, m.NATS)
	}
	names := p.Names()
	found := make([]machine, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { found[i], errs[i] = m.reach(ctx, name, p.Here[name]) })
	}
	wg.Wait()
	r := &Reached{ByName: map[string]launch.Host{}, client: map[string]string{}}
	ids := make([]string, len(names))
	for i, f := range found {
		if errs[i] != nil {
			continue
		}
		r.ByName[names[i]], ids[i] = f.host, f.id
		if !p.Here[names[i]] {
			r.client[names[i]] = f.client
		}
	}
	if err := errors.Join(append(errs, oneMachine(names, ids))...); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// machine is a machine that has been reached.
type machine struct {
	host   launch.Host
	client string // address of this machine as seen from there; "" if unknown or on this machine
	id     string // see ThisMachine
}

// reach connects to the machine called name; here: it is this one.
func (m Means) reach(ctx context.Context, name string, here bool) (machine, error) {
	if here {
		return machine{host: &launch.Local{Prepare: m.Here}, id: ThisMachine()}, nil
	}
	ssh := m.SSH
	ssh.Say = func(text string) { m.Say(name + ": " + text) }
	remote, greeting, err := ssh.Reach(ctx, name)
	if err != nil {
		return machine{}, err
	}
	return machine{host: remote, client: greeting.Client, id: greeting.Node}, nil
}

// reachAgents opens the hosts of places on agents. The agents' slots are taken when the ranks start.
func reachAgents(ctx context.Context, p Places, n configs.NATS) (*Reached, error) {
	conn, err := ConnectAgents(ctx, n, agentsClient, zap.NewNop())
	if err != nil {
		return nil, err
	}
	used := p.Names()
	byName, err := agent.Hosts(conn, p.Agents, func(name string) bool { return slices.Contains(used, name) })
	r := &Reached{ByName: byName, agents: conn}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// ThisMachine identifies this machine, and a container on it; "" if that fails.
func ThisMachine() string {
	node, err := shm.LocalNode()
	if err != nil {
		return ""
	}
	return node.Boot + " " + node.PIDNamespace
}

// oneMachine refuses two names for one machine: ranks under each name would count GPUs and cores from 0. ids identify
// the machines; "" if unknown.
func oneMachine(names, ids []string) error {
	for i, id := range ids {
		if first := slices.Index(ids, id); id != "" && first < i {
			return fmt.Errorf("hosts %s and %s are one machine: give it one name with the slots of both", names[first],
				names[i])
		}
	}
	return nil
}

// Close closes all machines, which kills ranks that have not ended. It may be called again.
func (r *Reached) Close() error {
	err := launch.CloseAll(r.ByName)
	if r.agents != nil {
		r.agents.Close()
	}
	return err
}

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
	l, key, err := &Link{closeServer: func() {}}, "nats.url: ", error(nil)
	if n.URL == "" {
		key = ""
		n, err = l.startServer(r, n, runID, log)
	} else {
		if n.SecretFile == "" { // other users may have access to the server
			n.SecretFile = configs.Inline(rand.Text())
		}
		l.Access, err = r.sameServer(n)
	}
	if err != nil {
		return nil, err
	}
	if l.Conn, err = wire.Connect(ctx, wire.Options{
		Server: n, RunID: runID, Name: "jacobi launcher", Timeout: ConnectTimeout, Logger: log,
	}); err != nil {
		l.closeServer()
		return nil, fmt.Errorf("%s%w", key, err)
	}
	return l, nil
}

// startServer starts a server for this run, and returns the launcher's access to it. It listens on loopback only,
// unless ranks run elsewhere.
func (l *Link) startServer(r *Reached, n configs.NATS, runID string, log *zap.Logger) (configs.NATS, error) {
	at, err := r.addresses(n.AdvertisedHosts())
	if err != nil {
		return n, fmt.Errorf("addresses of this machine: %w", err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(at))...)))
	srv, err := natsserver.Start(natsserver.Options{RunID: runID, Hosts: slices.Compact(all), Port: n.Port, Log: log})
	if err != nil {
		return n, err
	}
	l.Access, l.closeServer = map[string]configs.NATS{}, srv.Close
	for name := range r.ByName {
		l.Access[name] = srv.NATS()
		if list := at[name]; list != nil {
			l.Access[name] = srv.At(list...)
		}
	}
	return srv.NATS(), nil
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
