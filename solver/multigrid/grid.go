package multigrid

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// Grid is a mesh with its levels, as the ranks share them.
type Grid struct {
	Device   Device
	Layout   Layout            // of the device
	Stripes  [][]solver.Stripe // by level and rank
	Rank     int
	Exchange solver.Exchange // nil if this rank holds all levels as a whole
	// Room fails unless there is so much memory for each rank of this machine. Aggregate asks it, unless it is nil.
	Room func(bytes int64) error
}

// Halo are the HaloDepth rows on both sides of this rank's stripe of a level.
type Halo struct {
	*Grid
	Level int
	Array Array
}

// HaloBytes implements solver.HaloRows.
func (h *Halo) HaloBytes() (bytes [2]int) {
	for side, has := range h.Layout.Neighbour {
		if has {
			bytes[side] = HaloDepth * h.Layout.Plan.RowBytes(h.Level, h.Array)
		}
	}
	return bytes
}

// Edge returns the rows of the edge at a side.
func (h *Halo) Edge(side solver.Side) solver.Stripe {
	return h.Layout.Stripes[h.Level].Edge(side, HaloDepth)
}

// Beyond returns the rows beyond a side.
func (h *Halo) Beyond(side solver.Side) solver.Stripe {
	return h.Layout.Stripes[h.Level].Beyond(side, HaloDepth)
}

// CopyEdge implements solver.HaloRows.
func (h *Halo) CopyEdge(ctx context.Context, side solver.Side, dst []byte) error {
	return h.Device.CopyRows(ctx, h.Level, h.Array, h.Edge(side), dst)
}

// SetHalo implements solver.HaloRows.
func (h *Halo) SetHalo(ctx context.Context, side solver.Side, src []byte) error {
	return h.Device.SetRows(ctx, h.Level, h.Array, h.Beyond(side), src)
}

// RankBlocks are an array of a level, of which each rank has computed a block of rows.
type RankBlocks struct {
	Device   Device
	RowBytes int
	Level    int
	Array    Array
	Rows     []solver.Stripe // by rank
	Rank     int
}

// BlockBytes implements solver.BlockRows.
func (b *RankBlocks) BlockBytes() (bytes []int) {
	for _, s := range b.Rows {
		bytes = append(bytes, s.Rows()*b.RowBytes)
	}
	return bytes
}

// CopyBlock implements solver.BlockRows.
func (b *RankBlocks) CopyBlock(ctx context.Context, dst []byte) error {
	return b.Device.CopyRows(ctx, b.Level, b.Array, b.Rows[b.Rank], dst)
}

// SetBlock implements solver.BlockRows.
func (b *RankBlocks) SetBlock(ctx context.Context, rank int, src []byte) error {
	return b.Device.SetRows(ctx, b.Level, b.Array, b.Rows[rank], src)
}

// RankBlocks returns an array of the first level that every rank holds as a whole.
func (g *Grid) RankBlocks(a Array) *RankBlocks {
	l := g.Layout
	return &RankBlocks{Device: g.Device, RowBytes: l.Plan.RowBytes(l.Agglomerated, a), Level: l.Agglomerated, Array: a,
		Rows: l.Plan.Below(l.Agglomerated-1, g.Stripes[l.Agglomerated-1]), Rank: g.Rank}
}

// FillHalos fills the halo of an array of a level, where there is a neighbour.
func (g *Grid) FillHalos(ctx context.Context, level int, a Array) error {
	h := &Halo{g, level, a}
	if err := g.Exchange.Post(ctx, h); err != nil {
		return err
	}
	return g.Exchange.Wait(ctx, h)
}

// WeightedHeadroom bounds the growth of the updates of a weighted operator beyond the first one, in powers of two.
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
			if err := g.Exchange.Gather(ctx, g.RankBlocks(a)); err != nil {
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
