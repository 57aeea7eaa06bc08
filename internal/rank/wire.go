package rank

import (
	"context"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/halo/reduce"
	"jacobi/solver"
)

// wired is a rank that can exchange rows with its neighbours and add sums with all ranks.
type wired struct {
	*opened
	peerRows
	links    *halo.Links
	exchange solver.Exchange
	reducer  solver.Reducer
	counts   *counts // nil unless statistics are wanted
}

// wireUp opens the exchange and the reducer. All ranks call it.
func (o *opened) wireUp(ctx context.Context, open *closers) (*wired, error) {
	peers, err := o.openPeers(ctx)
	if err != nil {
		return nil, err
	}
	var zones zonePeers
	if o.levels != nil {
		if peers, zones, err = o.openZones(ctx); err != nil {
			return nil, err
		}
	}
	links, err := o.openLinks(ctx, open)
	if err != nil {
		return nil, err
	}
	exchange, err := o.openExchange(peers, zones, links, open)
	if err != nil {
		return nil, err
	}
	reducer, err := o.openReducer(ctx, open)
	if err != nil {
		return nil, err
	}
	var c *counts
	if o.Stats {
		c = new(counts)
	}
	return &wired{opened: o, peerRows: peers, links: links, exchange: c.exchange(exchange), reducer: c.reducer(reducer),
		counts: c}, nil
}

// openExchange opens the exchange of rows with the neighbours, over peer memory where there is any.
func (o *opened) openExchange(peers peerRows, zones zonePeers, links *halo.Links, open *closers) (solver.Exchange,
	error) {
	if o.levels != nil {
		return nil, o.levels.connect(o.id.Rank, links.Rows(), zones, o.sole, open)
	}
	if o.gpu == nil {
		x, err := solver.NewHostExchange(o.backend, o.layout, links.Rows())
		if err != nil {
			return nil, err // not x: a nil *solver.HostExchange is a non-nil interface
		}
		return x, nil
	}
	x, err := cuda.NewExchange(o.gpu, o.id.Size == 1, peers.peers, links.Rows())
	if err != nil {
		return nil, err
	}
	open.add(x.Close)
	return x, nil
}

// openReducer opens the sum over all ranks.
func (l *laidOut) openReducer(ctx context.Context, open *closers) (solver.Reducer, error) {
	reducer, err := reduce.New(ctx, reduce.Options{
		Team: l.team, MaxSums: l.sums, Window: l.ahead + 1,
		NATSOnly: l.Config.Halo.Transport == string(halo.ModeNATS), Timeout: l.Config.Halo.Timeout, Spin: l.spin(),
		Log: l.Log,
	})
	if err != nil {
		return nil, err
	}
	open.add(reducer.Close)
	return reducer, nil
}
