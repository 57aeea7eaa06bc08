package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/shm"
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
	var wg sync.WaitGroup
	errs := make(chan error, len(r.ByName))
	for _, host := range r.ByName {
		wg.Go(func() { errs <- host.Close() })
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	if r.agents != nil {
		r.agents.Close()
	}
	return errors.Join(all...)
}
