package hosts

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/natsserver"
)

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
