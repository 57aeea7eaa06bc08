package rank

import (
	"context"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/halo/reduce"
	"jacobi/solver"
)

// wires are the ways to the neighbours, for rows, and to all ranks, for sums.
type wires struct {
	windows
	links    *halo.Links
	exchange solver.Exchange
	reducer  solver.Reducer
}

// wireUp opens the exchange and the reducer. All ranks call it.
func (r *run) wireUp(ctx context.Context) error {
	w, err := r.openWindows(ctx)
	if err != nil {
		return err
	}
	links, err := r.openLinks(ctx)
	if err != nil {
		return err
	}
	exchange, err := r.openExchange(w, links)
	if err != nil {
		return err
	}
	reducer, err := r.openReducer(ctx)
	if err != nil {
		return err
	}
	r.wires = wires{windows: w, links: links, exchange: exchange, reducer: reducer}
	return nil
}

// openExchange opens the exchange of rows with the neighbours, over peer memory where there is any.
func (r *run) openExchange(w windows, links *halo.Links) (solver.Exchange, error) {
	if r.levels != nil {
		return nil, r.connectLevels(links.Rows(), w)
	}
	if r.gpu == nil {
		return solver.NewHostExchange(links.Rows(), solver.HostOptions{}), nil
	}
	x, err := cuda.NewExchange(r.gpu, r.id.Size == 1, w.neighbours, links.Rows())
	if err != nil {
		return nil, err
	}
	r.open.add(x.Close)
	return x, nil
}

// openReducer opens the sum over all ranks.
func (r *run) openReducer(ctx context.Context) (solver.Reducer, error) {
	reducer, err := reduce.New(ctx, reduce.Options{
		Team: r.team, MaxSums: r.Sums, Window: r.Ahead + 1,
		NATSOnly: r.Config.Halo.Transport == string(halo.ModeNATS), Timeout: r.Config.Halo.Timeout, Spin: r.spin(),
		Log: r.Log,
	})
	if err != nil {
		return nil, err
	}
	r.open.add(reducer.Close)
	return reducer, nil
}
