package rank

import (
	"context"
	"fmt"
	"slices"

	"jacobi/configs"
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
	var members [2]halo.Member
	for side, has := range l.layout.Neighbour {
		if has {
			m := l.neighbour(solver.Side(side))
			shares, why := roster.SharesMemory(l.team.Self(), m)
			members[side] = halo.Member{Host: m.Host, SharesMemory: shares, Why: why}
		}
	}
	if l.id.Size == 1 {
		mode = halo.ModeAuto // a single rank is its own neighbour or has none
	}
	compress, err := halo.ParseCompress(l.Config.Halo.Compress)
	if err != nil {
		return nil, err
	}
	timeout := l.Config.Halo.Timeout
	nats := halo.NATSOptions{Conn: l.conn, Dial: l.dialLink, Prefix: l.team.Prefix(), Log: l.Log, Timeout: timeout,
		Compress: compress}
	peers := []halo.Peer{halo.SharedMemory{Options: halo.SharedOptions{Timeout: timeout, Spin: l.spin()}}}
	if mode == halo.ModeDirect {
		direct, err := l.directPeer(nats)
		if err != nil {
			return nil, err
		}
		peers = append(peers, direct)
	}
	links, err := halo.Connect(ctx, halo.Options{
		Rank:    l.id.Rank,
		Members: members,
		Ends:    halo.Ends(halo.RunIDOf(l.id.RunID), l.layout.Mesh, l.stripes, l.layout.Depth, l.id.Rank),
		Mode:    mode,
		Peers:   peers,
		NATS:    nats,
	})
	if err != nil {
		return nil, err
	}
	open.add(links.Close)
	return links, nil
}

// directPeer returns the transport over TCP. It encrypts unless all ranks are on one host, or as the user says.
func (l *laidOut) directPeer(nats halo.NATSOptions) (halo.Direct, error) {
	c := l.Config.Halo.Direct
	at, err := configs.ParseListen(c.Listen)
	if err != nil {
		return halo.Direct{}, fmt.Errorf("halo.direct.listen %q: %w", c.Listen, err)
	}
	here := oneHost(l.team.Groups())
	o := halo.DirectOptions{Listen: halo.ListenAt(at), Encrypt: c.Encrypt == "always" || c.Encrypt == "auto" && !here,
		Trusted: here, NATS: nats}
	if conn, ok := l.conn.(interface{ Shared() []byte }); ok {
		o.Key = conn.Shared()
	}
	return halo.Direct{Options: o}, nil
}

// oneHost reports whether all ranks run under one kernel.
func oneHost(groups []roster.Group) bool {
	boot := groups[0].First.Node.Boot
	return boot != "" && !slices.ContainsFunc(groups, func(g roster.Group) bool { return g.First.Node.Boot != boot })
}
