package rank

import (
	"context"
	"encoding/json"
	"fmt"

	"jacobi/halo"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// openLinks opens the links to the neighbours.
func (l *laidOut) openLinks(ctx context.Context, open *closers) (*halo.Links, error) {
	mode, err := halo.ParseMode(l.Config.Halo.Transport)
	if err != nil {
		return nil, err
	}
	members := make([]halo.Member, l.id.Size)
	for i, m := range l.team.Members() {
		if members[i], err = haloMember(m); err != nil {
			return nil, err
		}
	}
	if l.id.Size == 1 {
		mode = halo.ModeAuto // a single rank is its own neighbour or has none
	}
	timeout := l.Config.Halo.Timeout
	links, err := halo.Connect(ctx, halo.Options{
		Rank:    l.id.Rank,
		Members: members,
		Ends:    halo.Ends(halo.RunIDOf(l.id.RunID), l.layout.Mesh, l.stripes, l.layout.Depth, l.id.Rank),
		Mode:    mode,
		Peers:   []halo.Peer{halo.SharedMemory{Options: halo.SharedOptions{Timeout: timeout, Spin: l.spin()}}},
		NATS: halo.NATSOptions{Conn: l.conn, Dial: l.dialLink, Prefix: l.team.Prefix(), Log: l.Log,
			Timeout: timeout},
	})
	if err != nil {
		return nil, err
	}
	open.add(links.Close)
	return links, nil
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

// rowLinks returns the links as solver.RowLinks: a nil interface, not a nil halo.Link, on a side without one.
func rowLinks(links *halo.Links) [2]solver.RowLink {
	var rows [2]solver.RowLink
	for side, l := range links.Link {
		if l != nil {
			rows[side] = l
		}
	}
	return rows
}
