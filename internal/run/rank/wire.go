package rank

import (
	"context"

	"jacobi/halo"
	"jacobi/halo/reduce"
	"jacobi/solver"
)

// wires are the ways to the neighbours, for rows, and to all ranks, for sums.
type wires struct {
	windows
	links   *halo.Links
	reducer solver.Reducer
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
	if err := r.method.Connect(links.Rows(), w.neighbours, w.all); err != nil {
		return err
	}
	reducer, err := r.openReducer(ctx)
	if err != nil {
		return err
	}
	r.wires = wires{windows: w, links: links, reducer: reducer}
	return nil
}

// openReducer opens the sum over all ranks.
func (r *run) openReducer(ctx context.Context) (solver.Reducer, error) {
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
