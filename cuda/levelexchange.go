package cuda

import (
	"context"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// LevelExchange implements multigrid.Exchange for Levels whose neighbours' GPUs write into each other's memory. It only
// queues: copies into the zone of another rank, the number of the exchange into a word there, the wait for the word
// that the other rank writes here, and copies out of the own zone. So the host waits for nothing in a cycle. Rows of
// other neighbours go over links through the host, and so does a gather unless every rank reaches the memory of every
// other.
type LevelExchange struct {
	levels *Levels
	layout multigrid.Layout
	tail   []solver.Stripe // by rank: rows of level Tail whose right-hand side it computes
	below  []solver.Stripe // by rank: rows of level 1 that belong to its own of level 0
	host   *multigrid.HostExchange
	*zones
}

// NewLevelExchange returns the exchange of a rank whose zone is open. stripes are those of Plan.Divide. neighbours are
// by side, nil where rows go over the links of host. all are the zones of all ranks but this one, by rank; empty if
// some cannot be reached. sole means that no other rank uses the GPU, so that kernels may wait for other ranks.
func NewLevelExchange(v *Levels, host *multigrid.HostExchange, stripes [][]solver.Stripe, rank int,
	neighbours [2]*ZonePeer, all []*ZonePeer, sole bool) (*LevelExchange, error) {
	for side, p := range neighbours {
		if p != nil && !v.layout.Neighbour[side] {
			return nil, fmt.Errorf("cuda levels: memory of a neighbour at the %v side, which has none",
				solver.Side(side))
		}
	}
	z := &zones{dev: v.dev, stream: v.stream, zone: v.zone, rank: rank, neighbours: neighbours, all: all,
		mover: zoneCopies{}}
	if sole {
		k, err := newZoneKernels(v.dev)
		if err != nil {
			return nil, fmt.Errorf("cuda levels: %w", err)
		}
		z.mover = k
	}
	if err := v.dev.newEvents(&z.marks[0], &z.marks[1]); err != nil {
		return nil, err
	}
	return newLevelExchange(v, v.layout, host, stripes, z), nil
}

func newLevelExchange(v *Levels, l multigrid.Layout, host *multigrid.HostExchange, stripes [][]solver.Stripe,
	z *zones) *LevelExchange {
	return &LevelExchange{levels: v, layout: l, host: host, zones: z, tail: l.Plan.Below(l.Tail-1, stripes[l.Tail-1]),
		below: l.Plan.Below(0, stripes[0])}
}

// Stage implements multigrid.StagedExchange.
func (x *LevelExchange) Stage(d multigrid.Device, l multigrid.StageLayout) (multigrid.StagedExchange, error) {
	v, ok := d.(*Levels)
	if !ok || v.dev != x.levels.dev {
		return nil, fmt.Errorf("cuda levels: %T does not share this device", d)
	}
	return newLevelExchange(v, l.Layout, x.host.ForStage(d, l), l.Stripes, x.zones), nil
}

// Overlap implements multigrid.Exchange.
func (x *LevelExchange) Overlap(ctx context.Context, level int, a multigrid.Array) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	own := x.layout.Stripes[level]
	f, err := x.levels.array(level, a, own, own.Rows()*x.layout.Plan.Levels[level].Mesh.RowBytes())
	if err != nil {
		return err
	}
	x.exchanges++
	n, bytes := x.exchanges, multigrid.Overlap*f.pitch
	edges := [2]int{own.Lo, own.Hi - multigrid.Overlap}
	halos := [2]int{own.Lo - multigrid.Overlap, own.Hi}
	var linked [2]bool
	var written, read []move
	for i, p := range x.neighbours {
		if p == nil {
			linked[i] = x.layout.Neighbour[i]
			continue
		}
		here, there, units := solver.Side(i), solver.Side(i).Opposite(), uint32(bytes/moveUnit)
		written = append(written, move{from: f.at(edges[i]), to: p.zone.rowsOf(there, n), word: p.zone.came(there),
			blocks: x.zone.count(len(written)), units: units})
		read = append(read, move{from: x.zone.rowsOf(here, n), to: f.at(halos[i]), word: x.zone.came(here),
			units: units})
	}
	if err := x.write(n, written); err != nil {
		return err
	}
	if linked != [2]bool{} {
		if err := x.host.OverlapAt(ctx, linked, level, a); err != nil {
			return err
		}
	}
	if err := x.read(n, read); err != nil {
		return err
	}
	x.overlaps.Add(1)
	x.written.Add(uint64(bytes))
	return x.pace(ctx, 8)
}

// Gather implements multigrid.Exchange.
func (x *LevelExchange) Gather(ctx context.Context) error {
	if len(x.all) == 0 {
		return x.host.Gather(ctx)
	}
	if err := x.gather(ctx, x.levels, x.layout.Tail, x.tail); err != nil {
		return fmt.Errorf("gather level %d: %w", x.layout.Tail, err)
	}
	return nil
}

// GatherSource implements multigrid.StagedExchange.
func (x *LevelExchange) GatherSource(ctx context.Context, d multigrid.Device, l multigrid.StageLayout) error {
	v, ok := d.(*Levels)
	if !ok || len(x.all) == 0 {
		return x.host.GatherSource(ctx, d, l)
	}
	return x.gather(ctx, v, 0, x.below)
}

// gather gives every rank the whole right-hand side of a level of v, of which each rank has a block of rows. Each rank
// writes its block into the zones of all others.
func (x *LevelExchange) gather(ctx context.Context, v *Levels, level int, blocks []solver.Stripe) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	whole := solver.Stripe{Lo: blocks[0].Lo, Hi: blocks[len(blocks)-1].Hi}
	f, err := v.array(level, multigrid.RightSide, whole, whole.Rows()*v.levels[level].Mesh.RowBytes())
	if err != nil {
		return err
	}
	if n := whole.Rows() * f.pitch; n > x.zone.right {
		return fmt.Errorf("cuda levels: %d bytes of a level are gathered, the zone has %d", n, x.zone.right)
	}
	x.gathers++
	n, own := x.gathers, blocks[x.rank]
	var written, read []move
	for i := 1; i < len(blocks); i++ { // not all into the same memory at once
		r := (x.rank + i) % len(blocks)
		to, theirs := x.all[r].zone, blocks[r]
		place := func(z zone, s solver.Stripe) driver.DevicePtr {
			return z.rightOf(n) + driver.DevicePtr((s.Lo-whole.Lo)*f.pitch)
		}
		written = append(written, move{from: f.at(own.Lo), to: place(to, own), word: to.gathered(x.rank),
			blocks: x.zone.count(len(written)), units: uint32(own.Rows() * f.pitch / moveUnit)})
		read = append(read, move{from: place(x.zone, theirs), to: f.at(theirs.Lo), word: x.zone.gathered(r),
			units: uint32(theirs.Rows() * f.pitch / moveUnit)})
	}
	if err := x.write(n, written); err != nil {
		return err
	}
	if err := x.read(n, read); err != nil {
		return err
	}
	return x.pace(ctx, 4*len(blocks))
}

// write lets the stream write rows into the memory of other ranks.
func (x *LevelExchange) write(n uint32, moves []move) error {
	defer x.dev.times.begin(x.stream, solver.Work{Kind: solver.WorkToPeer, Number: uint64(n)}).end()
	return x.mover.write(x.stream, n, moves)
}

// read makes the stream wait for the rows of other ranks and copy them to their places.
func (x *LevelExchange) read(n uint32, moves []move) error {
	defer x.dev.times.begin(x.stream, solver.Work{Kind: solver.WorkAwait, Number: uint64(n)}).end()
	return x.mover.read(x.stream, n, moves)
}

var _ multigrid.StagedExchange = (*LevelExchange)(nil)
