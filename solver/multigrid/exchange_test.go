package multigrid_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"jacobi/internal/compute/cpu/levels"
	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/multigrid"
)

// counted is a link that keeps the bytes of its messages.
type counted struct {
	solver.RowLink
	sent []int
}

func (c *counted) Send(ctx context.Context, n solver.ExchangeNumber, rows []byte) error {
	c.sent = append(c.sent, len(rows))
	return c.RowLink.Send(ctx, n, rows)
}

// TestMessagesHaveTheSizeOfTheirLevel counts what goes over the links of three ranks in the exchanges of a cycle: rows
// of each level with the columns and type of that level, and of a gather each block once over each link.
func TestMessagesHaveTheSizeOfTheirLevel(t *testing.T) {
	for _, ring := range []bool{false, true} {
		mesh := solver.Mesh{NX: 513, NY: 515, DType: solver.Float64, Walls: solver.WrapRows(ring)}
		plan, err := multigrid.NewPlan(mesh, solver.Operator{})
		if err != nil {
			t.Fatal(err)
		}
		whole, err := solver.Partition(mesh.Interior(), 3, multigrid.HaloDepth)
		if err != nil {
			t.Fatal(err)
		}
		stripes, agglomerated := plan.Divide(whole, 50000)
		if agglomerated != 2 {
			t.Fatalf("%d levels are divided, want 2", agglomerated)
		}
		links := linksOf(plan, stripes, agglomerated)
		done := make(chan error)
		for rank := range whole {
			l := plan.LayoutOf(stripes, agglomerated, rank)
			go func() { done <- exchangeCycle(t.Context(), l, stripes, rank, links[rank]) }()
		}
		if err := errors.Join(<-done, <-done, <-done); err != nil {
			t.Fatal(err)
		}
		const fine, coarse = multigrid.HaloDepth * 513 * 8, multigrid.HaloDepth * 257 * 4
		block := func(rank int) int {
			rows := plan.Below(agglomerated-1, stripes[agglomerated-1])[rank].Rows()
			return rows * plan.Levels[agglomerated].Mesh.RowBytes()
		}
		for _, c := range []struct {
			rank int
			side solver.Side
			want []int
		}{
			{0, solver.Bottom, []int{fine, coarse, block(0), 0, coarse}},
			{1, solver.Top, []int{fine, coarse, block(1), block(2), coarse}},
			{1, solver.Bottom, []int{fine, coarse, block(1), block(0), coarse}},
			{2, solver.Top, []int{fine, coarse, block(2), 0, coarse}},
		} {
			if got := links[c.rank][c.side].(*counted).sent; !slices.Equal(got, c.want) {
				t.Errorf("ring %v, rank %d, %v: messages of %d bytes, want %d", ring, c.rank, c.side, got, c.want)
			}
		}
	}
}

// linksOf returns the links of all ranks.
func linksOf(plan *multigrid.Plan, stripes [][]solver.Stripe, agglomerated int) [][2]solver.RowLink {
	var layouts []solver.Layout
	for rank := range stripes[0] {
		layouts = append(layouts, solver.Layout{Mesh: plan.Levels[0].Mesh,
			Neighbour: plan.LayoutOf(stripes, agglomerated, rank).Neighbour})
	}
	links := exchangetest.Links(layouts)
	for rank := range links {
		for side, l := range links[rank] {
			if l != nil {
				links[rank][side] = &counted{RowLink: l}
			}
		}
	}
	return links
}

// exchangeCycle makes the exchanges of a cycle on two levels.
func exchangeCycle(ctx context.Context, l multigrid.Layout, stripes [][]solver.Stripe, rank int,
	links [2]solver.RowLink) error {
	d, err := levels.New(l, 1, "")
	if err != nil {
		return err
	}
	defer d.Close()
	g := multigrid.Grid{Device: d, Layout: l, Stripes: stripes, Rank: rank, Exchange: solver.NewHostExchange(links,
		solver.HostOptions{Rank: rank, Most: multigrid.HaloDepth * l.Plan.Levels[0].Mesh.RowBytes()})}
	return errors.Join(g.FillHalos(ctx, 0, multigrid.Unknowns), g.FillHalos(ctx, 1, multigrid.RightSide),
		g.Exchange.Gather(ctx, g.RankBlocks(multigrid.RightSide)), g.FillHalos(ctx, 1, multigrid.Unknowns))
}
