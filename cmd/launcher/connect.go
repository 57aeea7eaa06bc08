package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/natsserver"
	"jacobi/internal/wire"
)

const connectTimeout = 5 * time.Second

// connect connects to the server that n names, or to one of its own. servers is what the ranks of each host need to do
// the same.
func connect(ctx context.Context, n configs.NATS, h *hosts, runID string, log *zap.Logger) (conn *wire.Conn,
	servers map[string]configs.NATS, stop func(), err error) {
	closeServer := func() {}
	key := "nats.url: "
	if n.URL == "" {
		var srv *natsserver.Server
		if srv, servers, err = ownServer(h, n, runID, log); err != nil {
			return nil, nil, nil, err
		}
		n, closeServer, key = srv.NATS(), srv.Close, ""
	} else {
		if n.SecretFile == "" { // others may share the server
			n.SecretFile = configs.Inline(rand.Text())
		}
		if servers, err = sameServer(h, n); err != nil {
			return nil, nil, nil, err
		}
	}
	conn, err = wire.Connect(ctx, wire.Options{
		Server: n, RunID: runID, Name: "jacobi launcher", Timeout: connectTimeout, Logger: log,
	})
	if err != nil {
		closeServer()
		return nil, nil, nil, fmt.Errorf("%s%w", key, err)
	}
	return conn, servers, func() { conn.Close(); closeServer() }, nil
}

// ownServer starts a server of this run's own, on loopback unless ranks are elsewhere.
func ownServer(h *hosts, own configs.NATS, runID string, log *zap.Logger) (*natsserver.Server, map[string]configs.NATS,
	error) {
	at, err := h.addresses(own.AdvertisedHosts())
	if err != nil {
		return nil, nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	var all []string
	for _, list := range at {
		all = append(all, list...)
	}
	slices.Sort(all)
	srv, err := natsserver.Start(natsserver.Options{RunID: runID, Hosts: slices.Compact(all), Port: own.Port, Log: log})
	if err != nil {
		return nil, nil, err
	}
	servers := map[string]configs.NATS{}
	for name := range h.byName {
		servers[name] = srv.NATS()
		if list := at[name]; list != nil {
			servers[name] = srv.At(list...)
		}
	}
	return srv, servers, nil
}

// sameServer gives all hosts n; other machines get what its files hold.
func sameServer(h *hosts, n configs.NATS) (map[string]configs.NATS, error) {
	servers := map[string]configs.NATS{}
	for name := range h.byName {
		servers[name] = n
		if h.agents != nil { // which have their own way to the server
			secret, err := configs.NATS{SecretFile: n.SecretFile}.Inlined()
			if err != nil {
				return nil, err
			}
			servers[name] = secret
			continue
		}
		if _, far := h.client[name]; far {
			var err error
			if servers[name], err = n.Inlined(); err != nil {
				return nil, err
			}
		}
	}
	return servers, nil
}

// permitted returns the error with which the server has refused one of the subscriptions of conn.
func permitted(ctx context.Context, conn *wire.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("no answer from the NATS server: %w", err)
	}
	return conn.Fault()
}
