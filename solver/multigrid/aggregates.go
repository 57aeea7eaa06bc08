package multigrid

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"

	"jacobi/solver"
	"jacobi/solver/multigrid/aggregation"
)

// Grid.Aggregate replaces the levels of a weighted operator by aggregates: sets of points that strong faces connect,
// whose equations package aggregation solves. They suit coefficients for which Galerkin levels do not
// (docs/methods.md).

// Where aggregates take over, the largest memory of a rank grows by wholeBytes for each point of the mesh, since every
// rank holds them as a whole, and by ownBytes for each point of its own rows. Both were measured with random
// coefficients.
const wholeBytes, ownBytes = 76, 32

// AggregateBytes returns about how much more memory each of so many ranks takes if aggregates take over.
func (p *Plan) AggregateBytes(ranks int) int64 {
	points := int64(p.Levels[0].Mesh.NX) * int64(p.Levels[0].Mesh.NY)
	return wholeBytes*points + ownBytes*points/int64(ranks)
}

// Aggregate sets up the aggregates of a weighted operator, whose finest level is loaded, and returns the Grid with
// them in place of the coarser levels. The field stays as it is, and so do its halos. All ranks call it. It fails
// before it takes memory if there is no room.
func (g *Grid) Aggregate(ctx context.Context) (Grid, error) {
	if g.Room != nil {
		if err := g.Room(g.Layout.Plan.AggregateBytes(len(g.Stripes[0]))); err != nil {
			return Grid{}, fmt.Errorf("aggregates, for coefficients that are hard for coarser meshes: %w", err)
		}
	}
	t, own := g.Layout.Plan.Tiling, g.Layout.Stripes[0]
	part, err := t.Aggregate(ctx, g.points(ctx), t.Covering(LeftRows(own, g.Layout.Neighbour)), t.Owned(own),
		runtime.GOMAXPROCS(0))
	if err != nil {
		return Grid{}, fmt.Errorf("aggregates: %w", err)
	}
	parts, err := g.allParts(ctx, part.Bytes())
	if err != nil {
		return Grid{}, fmt.Errorf("parts of aggregates: %w", err)
	}
	levels, err := aggregation.New(t, parts, runtime.GOMAXPROCS(0))
	if err != nil {
		return Grid{}, fmt.Errorf("aggregates: %w", err)
	}
	a := *g
	a.Layout.Plan = g.Layout.Plan.aggregated(levels)
	a.Layout.Agglomerated, a.Layout.Stripes, a.Stripes = 1, g.Layout.Stripes[:1], g.Stripes[:min(1, len(g.Stripes))]
	if err := g.Device.Aggregate(ctx, a.Layout, part); err != nil {
		return Grid{}, fmt.Errorf("aggregates: %w", err)
	}
	return a, nil
}

// points returns a function that reads the equations of a row of points.
func (g *Grid) points(ctx context.Context) func(y int, to aggregation.Row) error {
	return func(y int, to aggregation.Row) error {
		row := make([]byte, g.Layout.Plan.RowBytes(0, Centre))
		for a, values := range map[Array][]float64{Centre: to.Diagonal, East: to.East, South: to.South} {
			if err := g.Device.CopyRows(ctx, 0, a, solver.Stripe{Lo: y, Hi: y + 1}, row); err != nil {
				return err
			}
			solver.Float64.Decode(values, row)
		}
		return nil
	}
}

// aggregated returns the plan with aggregates as the second and last level: a column with a row for each unknown.
func (p *Plan) aggregated(levels *aggregation.Levels) *Plan {
	a := *p
	a.Aggregates = levels
	const open = solver.Neumann // every row counts
	a.Levels = []Level{p.Levels[0], {Mesh: solver.Mesh{NX: 1, NY: int(levels.First[len(levels.First)-1]),
		DType: solver.Float64, Walls: solver.Walls{Left: open, Right: open, Top: open, Bottom: open}}}}
	return &a
}

// allParts returns the parts of all ranks.
func (g *Grid) allParts(ctx context.Context, own []byte) ([][]byte, error) {
	if g.Exchange == nil {
		return [][]byte{own}, nil
	}
	ranks := len(g.Stripes[0])
	sizes := newPieces(make([]int, ranks), binary.LittleEndian.AppendUint64(nil, uint64(len(own))))
	for r := range sizes.bytes {
		sizes.bytes[r] = 8
	}
	if err := g.Exchange.Gather(ctx, sizes); err != nil {
		return nil, err
	}
	bytes := make([]int, ranks)
	for r, b := range sizes.all {
		bytes[r] = int(binary.LittleEndian.Uint64(b))
	}
	parts := newPieces(bytes, own)
	return parts.all, g.Exchange.Gather(ctx, parts)
}

// pieces implements solver.BlockRows for bytes that ranks hold in common.
type pieces struct {
	bytes []int
	own   []byte
	all   [][]byte // by rank
}

func newPieces(bytes []int, own []byte) *pieces {
	return &pieces{bytes: bytes, own: own, all: make([][]byte, len(bytes))}
}

// BlockBytes implements solver.BlockRows.
func (p *pieces) BlockBytes() []int { return p.bytes }

// CopyBlock implements solver.BlockRows.
func (p *pieces) CopyBlock(_ context.Context, dst []byte) error {
	copy(dst, p.own)
	return nil
}

// SetBlock implements solver.BlockRows.
func (p *pieces) SetBlock(_ context.Context, rank int, src []byte) error {
	p.all[rank] = append([]byte(nil), src...)
	return nil
}
