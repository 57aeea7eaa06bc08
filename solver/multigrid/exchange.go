package multigrid

import (
	"context"

	"jacobi/solver"
)

// Grid is a mesh with its levels, as the ranks share them.
type Grid struct {
	Device   Device
	Layout   Layout            // of the device
	Stripes  [][]solver.Stripe // by level and rank
	Rank     int
	Exchange solver.Exchange // nil if this rank holds all levels as a whole
}

// Halo are the Overlap rows on both sides of this rank's stripe of a level.
type Halo struct {
	*Grid
	Level int
	Array Array
}

// HaloBytes implements solver.HaloRows.
func (h *Halo) HaloBytes() (bytes [2]int) {
	for side, has := range h.Layout.Neighbour {
		if has {
			bytes[side] = Overlap * h.Layout.Plan.Levels[h.Level].Mesh.RowBytes()
		}
	}
	return bytes
}

// Edge returns the rows of the edge at a side.
func (h *Halo) Edge(side solver.Side) solver.Stripe {
	own := h.Layout.Stripes[h.Level]
	if side == solver.Top {
		return solver.Stripe{Lo: own.Lo, Hi: own.Lo + Overlap}
	}
	return solver.Stripe{Lo: own.Hi - Overlap, Hi: own.Hi}
}

// Beyond returns the rows beyond a side.
func (h *Halo) Beyond(side solver.Side) solver.Stripe {
	own := h.Layout.Stripes[h.Level]
	if side == solver.Top {
		return solver.Stripe{Lo: own.Lo - Overlap, Hi: own.Lo}
	}
	return solver.Stripe{Lo: own.Hi, Hi: own.Hi + Overlap}
}

// CopyEdge implements solver.HaloRows.
func (h *Halo) CopyEdge(ctx context.Context, side solver.Side, dst []byte) error {
	return h.Device.CopyRows(ctx, h.Level, h.Array, h.Edge(side), dst)
}

// SetHalo implements solver.HaloRows.
func (h *Halo) SetHalo(ctx context.Context, side solver.Side, src []byte) error {
	return h.Device.SetRows(ctx, h.Level, h.Array, h.Beyond(side), src)
}

// Blocks are the right-hand side of a level, of which each rank has computed a block of rows.
type Blocks struct {
	Device Device
	Mesh   solver.Mesh // of the level
	Level  int
	Rows   []solver.Stripe // by rank
	Rank   int
}

// BlockBytes implements solver.BlockRows.
func (b *Blocks) BlockBytes() (bytes []int) {
	for _, s := range b.Rows {
		bytes = append(bytes, s.Rows()*b.Mesh.RowBytes())
	}
	return bytes
}

// CopyBlock implements solver.BlockRows.
func (b *Blocks) CopyBlock(ctx context.Context, dst []byte) error {
	return b.Device.CopyRows(ctx, b.Level, RightSide, b.Rows[b.Rank], dst)
}

// SetBlock implements solver.BlockRows.
func (b *Blocks) SetBlock(ctx context.Context, rank int, src []byte) error {
	return b.Device.SetRows(ctx, b.Level, RightSide, b.Rows[rank], src)
}

// Blocks returns the right-hand side of the first level that every rank holds as a whole.
func (g *Grid) Blocks() *Blocks {
	l := g.Layout
	return &Blocks{Device: g.Device, Mesh: l.Plan.Levels[l.Tail].Mesh, Level: l.Tail,
		Rows: l.Plan.Below(l.Tail-1, g.Stripes[l.Tail-1]), Rank: g.Rank}
}

// source returns the source of a coarser mesh that every rank holds as a whole on d. Each rank has computed the rows
// that belong to its own of g (Layout.Below).
func (g *Grid) source(d Device, coarser solver.Mesh) *Blocks {
	return &Blocks{Device: d, Mesh: coarser, Rows: g.Layout.Plan.Below(0, g.Stripes[0]), Rank: g.Rank}
}

// Overlap fills the halo of an array of a level, where there is a neighbour.
func (g *Grid) Overlap(ctx context.Context, level int, a Array) error {
	h := &Halo{g, level, a}
	if err := g.Exchange.Post(ctx, h); err != nil {
		return err
	}
	return g.Exchange.Wait(ctx, h)
}
