package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"jacobi/internal/launch"
	"jacobi/internal/natsserver"
	"jacobi/internal/wire"
)

// hosts are the machines of a run, connected and ready to start ranks.
type hosts struct {
	byName map[string]launch.Host
	// client is, by machine reached over ssh, the address of this machine as seen from there; "" if unknown.
	client map[string]string
	// agents is the connection to the agents, if these are the hosts.
	agents *wire.Conn
}

// reach connects to the machines of a plan: over ssh, or through their agents if the plan has any. This machine needs
// no connection. The error names all machines that cannot be reached.
func reach(ctx context.Context, p *plan, ssh launch.SSH, say func(string)) (*hosts, error) {
	h := &hosts{byName: map[string]launch.Host{}, client: map[string]string{}}
	if p.agents != nil {
		return h, h.reachAgents(ctx, p)
	}
	names := p.places.names()
	errs := make([]error, len(names))
	machines := make([]string, len(names))
	var mu sync.Mutex // guards h
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			if p.places.here[name] {
				mu.Lock()
				defer mu.Unlock()
				prepare := func(ctx context.Context, spec *launch.Spec) (func(), error) {
					return p.shareGPUs(ctx, spec, say), nil
				}
				h.byName[name], machines[i] = &launch.Local{Prepare: prepare}, machine()
				return
			}
			s := ssh
			s.Say = func(text string) { say(name + ": " + text) }
			remote, greeting, err := s.Reach(ctx, name)
			if err != nil {
				errs[i] = err
				return
			}
			mu.Lock()
			defer mu.Unlock()
			h.byName[name], h.client[name], machines[i] = remote, greeting.Client, greeting.Node
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, oneMachine(names, machines))...); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// oneMachine refuses two names for one machine: ranks under each name would count GPUs and cores from 0.
func oneMachine(names, machines []string) error {
	for i, m := range machines {
		if first := slices.Index(machines, m); m != "" && first < i {
			return fmt.Errorf("hosts %s and %s are one machine: give it one name with the slots of both", names[first],
				names[i])
		}
	}
	return nil
}

// close closes all machines, which kills ranks that have not ended.
func (h *hosts) close() error {
	var wg sync.WaitGroup
	errs := make(chan error, len(h.byName))
	for _, host := range h.byName {
		wg.Go(func() { errs <- host.Close() })
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	if h.agents != nil {
		h.agents.Close()
	}
	return errors.Join(all...)
}

// addresses returns, by machine reached over ssh, the addresses at which it reaches this one: the advertised ones if
// there are any, else the address from which ssh came. If that address is not this machine's, because of a jump host or
// address translation, all addresses of this machine are returned.
func (h *hosts) addresses(advertised []string) (map[string][]string, error) {
	own, err := natsserver.Addresses()
	if err != nil {
		return nil, err
	}
	at := map[string][]string{}
	for name, client := range h.client {
		switch {
		case len(advertised) > 0:
			at[name] = advertised
		case slices.Contains(own, client):
			at[name] = []string{client}
		default:
			at[name] = own
		}
	}
	return at, nil
}
