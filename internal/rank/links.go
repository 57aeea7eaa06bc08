package rank

import (
	"context"

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
		shares, why := roster.SharesMemory(l.team.Self(), m)
		members[i] = halo.Member{Host: m.Host, SharesMemory: shares, Why: why}
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
