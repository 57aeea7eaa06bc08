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

// connect connects to the server that n names, or starts one for this run. servers holds, by host, the configuration
// with which its ranks connect to the same server.
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
		if n.SecretFile == "" { // other users may have access to the server
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

// ownServer starts a server for this run. It listens on loopback only, unless ranks run elsewhere.
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

// sameServer returns n for all hosts. Other machines get the contents of its files, and agents the secret alone.
func sameServer(h *hosts, n configs.NATS) (map[string]configs.NATS, error) {
	servers := map[string]configs.NATS{}
	for name := range h.byName {
		servers[name] = n
		if h.agents != nil { // an agent has its own access to the server
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

// permitted returns the server's error if it has refused a subscription of conn.
func permitted(ctx context.Context, conn *wire.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("no answer from the NATS server: %w", err)
	}
	return conn.Fault()
}
