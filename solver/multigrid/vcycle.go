package multigrid

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// vcycle does V-cycles on a Grid, in halves.
type vcycle struct {
	Grid
	gathered *RankBlocks // the right-hand side of level Agglomerated; nil without an exchange
	watch    *solver.Watch
}

func newVcycle(g Grid, w *solver.Watch) vcycle {
	c := vcycle{Grid: g, watch: w}
	if g.Exchange != nil {
		c.gathered = g.RankBlocks(RightSide)
	}
	return c
}

// down does the first half of a cycle, with the solution on the levels that are held as a whole.
func (c *vcycle) down(ctx context.Context) error {
	if err := c.halos(ctx, 0, Unknowns); err != nil {
		return err
	}
	return c.downFromHalos(ctx)
}

// downFromHalos does the first half of a cycle with a field whose halos are filled.
func (c *vcycle) downFromHalos(ctx context.Context) error {
	for l := range c.Layout.Agglomerated {
		if l > 0 {
			if err := c.halos(ctx, l, RightSide); err != nil {
				return err
			}
		}
		if err := c.timed(solver.StepDown, l, func() error { return c.Device.Down(ctx, l) }); err != nil {
			return fmt.Errorf("level %d: %w", l, err)
		}
	}
	if c.gathered != nil {
		gather := func() error { return c.Exchange.Gather(ctx, c.gathered) }
		if err := c.timed(solver.StepGather, c.Layout.Agglomerated, gather); err != nil {
			return fmt.Errorf("gather level %d: %w", c.Layout.Agglomerated, err)
		}
	}
	agglomerate := func() error { return c.Device.Agglomerate(ctx) }
	if err := c.timed(solver.StepAgglomerated, c.Layout.Agglomerated, agglomerate); err != nil {
		return fmt.Errorf("level %d: %w", c.Layout.Agglomerated, err)
	}
	return nil
}

// up does the second half of a cycle up to level to. With 1 the field stays as it is.
func (c *vcycle) up(ctx context.Context, to int) error {
	for l := c.Layout.Agglomerated - 1; l >= to; l-- {
		if err := c.upLevel(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// upLevel does the second half of a cycle on a level.
func (c *vcycle) upLevel(ctx context.Context, l int) error {
	if l+1 < c.Layout.Agglomerated {
		if err := c.halos(ctx, l+1, Unknowns); err != nil {
			return err
		}
	}
	if err := c.timed(solver.StepUp, l, func() error { return c.Device.Up(ctx, l) }); err != nil {
		return fmt.Errorf("level %d: %w", l, err)
	}
	return nil
}

// halos fills the halos of a level.
func (c *vcycle) halos(ctx context.Context, level int, a Array) error {
	if c.Exchange == nil {
		return nil
	}
	return c.timed(solver.StepHalos, level, func() error { return c.Grid.FillHalos(ctx, level, a) })
}

// timed measures f as a step on a level.
func (c *vcycle) timed(k solver.StepKind, level int, f func() error) error {
	return c.watch.Do(solver.Step{Kind: k, Level: level}, f)
}
