package multigrid

import (
	"context"
	"fmt"
)

// WeightedHeadroom is by how many powers of two the updates of cycles of a weighted operator may exceed the first one.
// Cycles make the energy of the error smaller, in which an update counts by the diagonal of its point: where
// coefficients differ, updates may grow at points with small ones. A spiral one point wide with a contrast of 10^4
// takes more than one.
const WeightedHeadroom = 12

// stencils are the arrays of a stencil.
var stencils = [...]Array{Centre, East, South, SouthEast, SouthWest}

// SetUp computes the levels of a weighted operator, whose finest level is loaded: for each level l finer than
// Agglomerated in turn, Coarsen(l), and then Scale(l+1) if level l+1 is finer than Agglomerated, too; at last Complete.
// In between it copies rows: before Scale(l+1) the HaloDepth rows of Centre, East, South, SouthEast and SouthWest on
// both sides of the stripe of level l+1, after it those of Scaling, and before Complete all of the five arrays of level
// Agglomerated. Where the operator is another one, there is nothing to do. All ranks call it.
func (g *Grid) SetUp(ctx context.Context) error {
	if !g.Layout.Plan.Weighted {
		return nil
	}
	for l := range g.Layout.Agglomerated {
		if err := g.Device.Coarsen(ctx, l); err != nil {
			return fmt.Errorf("level %d: %w", l+1, err)
		}
		if err := g.completeStencil(ctx, l+1); err != nil {
			return fmt.Errorf("level %d: %w", l+1, err)
		}
	}
	if err := g.Device.Complete(ctx); err != nil {
		return fmt.Errorf("levels: %w", err)
	}
	return nil
}

// completeStencil copies what other ranks have computed of the stencil of a level, and scales it.
func (g *Grid) completeStencil(ctx context.Context, level int) error {
	if level == g.Layout.Agglomerated {
		if g.Exchange == nil {
			return nil
		}
		for _, a := range stencils {
			if err := g.Exchange.Gather(ctx, g.Blocks(a)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, a := range stencils {
		if err := g.FillHalos(ctx, level, a); err != nil {
			return err
		}
	}
	if err := g.Device.Scale(ctx, level); err != nil {
		return err
	}
	return g.FillHalos(ctx, level, Scaling)
}
