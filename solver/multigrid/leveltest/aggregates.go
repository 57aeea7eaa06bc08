package leveltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/multigrid"
)

// RunAggregates runs every second case of weighted operators with cycles before and after their levels become
// aggregates, and with conjugate gradients.
func RunAggregates(t *testing.T, open CGFactory) {
	for i, c := range Sample(WeightedCases()) {
		if i%2 > 0 {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			if err := CheckAggregates(t.Context(), c, open); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// CheckAggregates is Check with aggregates from the second cycle on.
func CheckAggregates(ctx context.Context, c Case, open CGFactory) error {
	plan, op, values, err := c.problem()
	if err != nil {
		return err
	}
	ranks, accelerators, err := acceleratedRanks(ctx, c, plan, op, values, open)
	if err != nil {
		return err
	}
	defer ranks.close()
	oracle, err := reference.NewWeighted(plan, op, values, c.Magnitude)
	if err != nil {
		return err
	}
	if err := ranks.setUp(ctx, oracle); err != nil {
		return fmt.Errorf("set-up: %w", err)
	}
	if err := ranks.cycle(ctx, oracle); err != nil {
		return fmt.Errorf("before aggregates: %w", err)
	}
	if err := ranks.aggregate(ctx, oracle); err != nil {
		return err
	}
	if err := errors.Join(ranks.cycle(ctx, oracle), oracle.Fault()); err != nil {
		return fmt.Errorf("with aggregates: %w", err)
	}
	o := &cgOracle{values: values, cycles: oracle, p: make([]float64, len(values.field))}
	for k, s := range accelerators {
		if err := s.Load(ctx, nil); err != nil {
			return fmt.Errorf("rank %d: load: %w", k, err)
		}
	}
	for k, by := range [][2]float64{{1.25, 0}, {0.875, -0.3}} {
		if err := errors.Join(ranks.swap(ctx, 0, multigrid.Unknowns),
			ranks.conjugate(ctx, accelerators, o, by)); err != nil {
			return fmt.Errorf("step %d with aggregates: %w", k, err)
		}
	}
	return nil
}

// aggregate replaces the levels of all ranks, which must have the same ones as the oracle.
func (r *ranks) aggregate(ctx context.Context, oracle *reference.Weighted) error {
	want, err := oracle.Aggregate(ctx)
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	var sides []solver.Layout
	for _, l := range r.layouts {
		sides = append(sides, solver.Layout{Mesh: r.plan.Levels[0].Mesh, Neighbour: l.Neighbour})
	}
	links, grids, errs := exchangetest.Links(sides), make([]multigrid.Grid, len(r.devices)), make(chan error)
	for k := range r.devices {
		g := r.grid(k)
		if len(r.devices) > 1 {
			g.Exchange = solver.NewHostExchange(links[k], solver.HostOptions{Rank: k, Most: 1000})
		}
		go func() {
			var err error
			if grids[k], err = g.Aggregate(ctx); err != nil {
				err = fmt.Errorf("rank %d: %w", k, err)
			}
			errs <- err
		}()
	}
	for range r.devices {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	for k, g := range grids {
		if !reflect.DeepEqual(g.Layout.Plan.Aggregates, want) {
			return fmt.Errorf("rank %d: other aggregates than one rank has", k)
		}
		r.layouts[k] = g.Layout
	}
	r.plan, r.stripes, r.agglomerated = grids[0].Layout.Plan, grids[0].Stripes, 1
	return nil
}
