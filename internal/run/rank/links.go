package rank

import (
	"context"
	"fmt"
	"slices"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/halo/reduce"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// wired is a run with ways to the neighbours, for rows, and to all ranks, for sums.
type wired struct {
	*equipped
	windows
	links   *halo.Links
	reducer solver.Reducer
}

// wireUp opens the exchange and the reducer. All ranks call it.
func (r *equipped) wireUp(ctx context.Context) (*wired, error) {
	w, err := r.openWindows(ctx)
	if err != nil {
		return nil, err
	}
	links, err := r.openLinks(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.method.Connect(links.Rows(), w.neighbours, w.all); err != nil {
		return nil, err
	}
	reducer, err := r.openReducer(ctx)
	if err != nil {
		return nil, err
	}
	return &wired{equipped: r, windows: w, links: links, reducer: reducer}, nil
}

// openReducer opens the sum over all ranks.
func (r *equipped) openReducer(ctx context.Context) (solver.Reducer, error) {
	reducer, err := reduce.New(ctx, reduce.Options{
		Comm: r.comm, MaxSums: r.Sums, Window: r.Ahead + 1,
		NATSOnly: r.Config.Halo.Transport == string(halo.ModeNATS), Timeout: r.Config.Halo.Timeout, Spin: r.spin(),
		Log: r.Log,
	})
	if err != nil {
		return nil, err
	}
	r.open.add(reducer.Close)
	return reducer, nil
}

// openLinks opens the links to the neighbours.
func (r *equipped) openLinks(ctx context.Context) (*halo.Links, error) {
	mode := halo.Mode(r.Config.Halo.Transport)
	var members [2]halo.Member
	for side, m := range r.beside() {
		shares, why := roster.SharesMemory(r.comm.Self(), m)
		members[side] = halo.Member{Host: m.Host, SharesMemory: shares, Why: why}
	}
	if r.id.Size == 1 {
		mode = halo.ModeAuto // a single rank is its own neighbour or has none
	}
	timeout := r.Config.Halo.Timeout
	// A neighbour may still have the links of the run or stage before this one, which must not answer here.
	id := halo.RunIDOf(r.comm.Name())
	nats := halo.NATSOptions{Conn: r.conn, Dial: r.dialLink, Prefix: r.comm.Subject(id.String()), Log: r.Log,
		Timeout: timeout, Compress: halo.Compress(r.Config.Halo.Compress)}
	peers := []halo.Peer{halo.SharedMemory{Options: halo.SharedOptions{Timeout: timeout, Spin: r.spin()}}}
	if mode == halo.ModeDirect {
		direct, err := r.directPeer(nats)
		if err != nil {
			return nil, err
		}
		peers = append(peers, direct)
	}
	links, err := halo.Connect(ctx, halo.Options{
		Comm:    r.comm,
		Rank:    r.id.Rank,
		Members: members,
		Ends:    halo.Ends(id, r.layout.Mesh, r.Stripes, r.layout.Depth, r.id.Rank),
		Mode:    mode,
		Peers:   peers,
		NATS:    nats,
	})
	if err != nil {
		return nil, err
	}
	r.open.add(links.Close)
	return links, nil
}

// directPeer returns the transport over TCP. It encrypts unless all ranks are on one host, or as the user says.
func (r *equipped) directPeer(nats halo.NATSOptions) (halo.Direct, error) {
	c := r.Config.Halo.Direct
	at, err := configs.ParseListen(c.Listen)
	if err != nil {
		return halo.Direct{}, fmt.Errorf("halo.direct.listen %q: %w", c.Listen, err)
	}
	here := oneHost(r.comm.Groups())
	o := halo.DirectOptions{Listen: halo.ListenAt(at), Encrypt: c.Encrypt == "always" || c.Encrypt == "auto" && !here,
		Trusted: here, NATS: nats}
	if conn, ok := r.conn.(interface{ Shared() []byte }); ok {
		o.Key = conn.Shared()
	}
	return halo.Direct{Options: o}, nil
}

// oneHost reports whether all ranks run under one kernel.
func oneHost(groups []roster.Group) bool {
	boot := groups[0].First.Node.Boot
	return boot != "" && !slices.ContainsFunc(groups, func(g roster.Group) bool { return g.First.Node.Boot != boot })
}
