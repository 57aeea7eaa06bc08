package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/halo/reduce"
	"jacobi/internal/roster"
	"jacobi/internal/shm"
	"jacobi/solver"
)

// nodeID returns the identity of this node as ranks exchange it; "" with an error if it cannot be determined.
func nodeID() (string, error) {
	node, err := shm.LocalNode()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(node)
	return string(b), err
}

// haloMember converts m for the negotiation of links.
func haloMember(m roster.Member) (halo.Member, error) {
	h := halo.Member{Rank: m.Rank, Host: m.Host}
	if m.NodeID == "" {
		return h, nil
	}
	if err := json.Unmarshal([]byte(m.NodeID), &h.Node); err != nil {
		return h, fmt.Errorf("node of rank %d: %w", m.Rank, err)
	}
	return h, nil
}

// openExchange opens the exchange of rows with the neighbours.
func (r *rank) openExchange(ctx context.Context) error {
	peers, err := r.openPeers(ctx)
	if err != nil {
		return err
	}
	if err := r.openLinks(ctx); err != nil {
		return err
	}
	if r.gpu == nil {
		r.exchange, err = solver.NewHostExchange(r.backend, r.layout, r.rowLinks())
		return err
	}
	x, err := cuda.NewExchange(r.gpu, r.id.Size == 1, peers, r.rowLinks())
	if err != nil {
		return err
	}
	r.exchange = x
	r.onClose(x.Close)
	return nil
}

// openLinks opens the links to the neighbours.
func (r *rank) openLinks(ctx context.Context) error {
	mode, err := halo.ParseMode(r.cfg.Halo.Transport)
	if err != nil {
		return err
	}
	members := make([]halo.Member, r.id.Size)
	for i, m := range r.team.Members() {
		if members[i], err = haloMember(m); err != nil {
			return err
		}
	}
	if r.id.Size == 1 {
		mode = halo.ModeAuto // a single rank is its own neighbour or has none
	}
	timeout := r.cfg.Halo.Timeout
	r.links, err = halo.Connect(ctx, halo.Options{
		Rank:    r.id.Rank,
		Members: members,
		Ends:    halo.Ends(halo.RunIDOf(r.id.RunID), r.layout.Mesh, r.stripes, r.layout.Depth, r.id.Rank),
		Mode:    mode,
		Peers:   []halo.Peer{halo.SharedMemory{Options: halo.SharedOptions{Timeout: timeout, Spin: r.spin()}}},
		NATS: halo.NATSOptions{Conn: r.conn, Dial: r.dialLink, Prefix: r.team.Prefix(), Log: r.log,
			Timeout: timeout},
	})
	if err != nil {
		return err
	}
	r.onClose(r.links.Close)
	return nil
}

// spin returns how long to poll shared memory for a message before sleeping.
func (r *rank) spin() time.Duration {
	return shm.SpinTime(r.threadsPerCore())
}

// rowLinks returns the links as solver.RowLinks: a nil interface, not a nil halo.Link, on a side without one.
func (r *rank) rowLinks() [2]solver.RowLink {
	var links [2]solver.RowLink
	for side, l := range r.links.Link {
		if l != nil {
			links[side] = l
		}
	}
	return links
}

// openReducer opens the reduction over all ranks.
func (r *rank) openReducer(ctx context.Context) error {
	reducer, err := reduce.New(ctx, reduce.Options{
		Team: r.team, MaxSums: r.layout.Depth, NATSOnly: r.cfg.Halo.Transport == string(halo.ModeNATS),
		Timeout: r.cfg.Halo.Timeout, Spin: r.spin(), Log: r.log,
	})
	if err != nil {
		return err
	}
	r.reducer = reducer
	r.onClose(reducer.Close)
	return nil
}
