package multigrid

import (
	"context"
	"fmt"
	"time"

	"jacobi/solver"
)

// HostExchange is an Exchange through the host's memory, over links that carry Overlap rows of the finest mesh. All
// messages have that size: those of the coarser levels, which are smaller, are filled up.
type HostExchange struct {
	device  Device
	layout  Layout
	stripes []solver.Stripe // of level 0, by rank
	blocks  []solver.Stripe // rows of level Tail whose right-hand side each rank computes
	rank    int
	*messages
}

// messages are what the exchanges of a rank send and receive. They share links, and so count together.
type messages struct {
	links   [2]solver.RowLink // by side; nil without a neighbour
	send    []byte            // a message
	recv    []byte
	numbers [2]solver.ExchangeNumber // of the last message, by side
}

// NewHostExchange returns the exchange of a rank whose device has layout l. stripes are those of Plan.Divide.
func NewHostExchange(d Device, l Layout, stripes [][]solver.Stripe, rank int,
	links [2]solver.RowLink) (*HostExchange, error) {
	for side, link := range links {
		if (link != nil) != l.Neighbour[side] {
			return nil, fmt.Errorf("multigrid: %v side: link %v, neighbour %v", solver.Side(side), link != nil,
				l.Neighbour[side])
		}
	}
	bytes := Overlap * l.Plan.Levels[0].Mesh.RowBytes()
	return newHostExchange(d, l, stripes, rank,
		&messages{links: links, send: make([]byte, bytes), recv: make([]byte, bytes)}), nil
}

func newHostExchange(d Device, l Layout, stripes [][]solver.Stripe, rank int, m *messages) *HostExchange {
	return &HostExchange{device: d, layout: l, stripes: stripes[0], rank: rank, messages: m,
		blocks: l.Plan.Below(l.Tail-1, stripes[l.Tail-1])}
}

// Stage implements StagedExchange.
func (x *HostExchange) Stage(d Device, l StageLayout) (StagedExchange, error) {
	return x.ForStage(d, l), nil
}

// ForStage returns what Stage does.
func (x *HostExchange) ForStage(d Device, l StageLayout) *HostExchange {
	return newHostExchange(d, l.Layout, l.Stripes, x.rank, x.messages)
}

// Overlap implements Exchange.
func (x *HostExchange) Overlap(ctx context.Context, level int, a Array) error {
	return x.OverlapAt(ctx, [2]bool{true, true}, level, a)
}

// OverlapAt does what Overlap does, at the given sides alone.
func (x *HostExchange) OverlapAt(ctx context.Context, sides [2]bool, level int, a Array) error {
	own, n := x.layout.Stripes[level], Overlap*x.layout.Plan.Levels[level].Mesh.RowBytes()
	edges := [2]solver.Stripe{{Lo: own.Lo, Hi: own.Lo + Overlap}, {Lo: own.Hi - Overlap, Hi: own.Hi}}
	halos := [2]solver.Stripe{{Lo: own.Lo - Overlap, Hi: own.Lo}, {Lo: own.Hi, Hi: own.Hi + Overlap}}
	return x.swap(ctx, sides, func(side solver.Side, message []byte) error {
		return x.device.CopyRows(ctx, level, a, edges[side], message[:n])
	}, func(side solver.Side, message []byte) error {
		return x.device.SetRows(ctx, level, a, halos[side], message[:n])
	})
}

// swap fills a message for each neighbour at the given sides, sends them, and takes those of the neighbours.
func (x *messages) swap(ctx context.Context, sides [2]bool,
	fill, take func(side solver.Side, message []byte) error) error {
	for i, link := range x.links {
		if link == nil || !sides[i] {
			continue
		}
		side := solver.Side(i)
		x.numbers[side]++
		begin := time.Now()
		if err := fill(side, x.send); err != nil {
			return fmt.Errorf("exchange %d: %w", x.numbers[side], err)
		}
		if timer, ok := link.(solver.ExchangeTimer); ok {
			timer.CopiedEdge(time.Since(begin))
		}
		if err := link.Send(ctx, x.numbers[side], x.send); err != nil {
			return err
		}
	}
	for i, link := range x.links {
		if link == nil || !sides[i] {
			continue
		}
		side := solver.Side(i)
		if err := link.Recv(ctx, x.numbers[side], x.recv); err != nil {
			return err
		}
		begin := time.Now()
		if err := take(side, x.recv); err != nil {
			return fmt.Errorf("exchange %d: %w", x.numbers[side], err)
		}
		if timer, ok := link.(solver.ExchangeTimer); ok {
			timer.CopiedHalo(time.Since(begin))
		}
	}
	return nil
}

// Gather implements Exchange.
func (x *HostExchange) Gather(ctx context.Context) error {
	if err := x.gather(ctx, x.device, x.layout.Tail, x.layout.Plan.Levels[x.layout.Tail].Mesh, x.blocks); err != nil {
		return fmt.Errorf("gather level %d: %w", x.layout.Tail, err)
	}
	return nil
}

// GatherSource implements StagedExchange.
func (x *HostExchange) GatherSource(ctx context.Context, d Device, l StageLayout) error {
	return x.gather(ctx, d, 0, l.Plan.Levels[0].Mesh, x.layout.Plan.Below(0, x.stripes))
}

// gather gives every rank the whole right-hand side of a level of d, of which each rank has a block of rows. The ranks
// are a chain: in step k each rank passes on to the rank below what the k-th rank above has computed, and to the rank
// above what the k-th rank below has.
func (x *HostExchange) gather(ctx context.Context, d Device, level int, m solver.Mesh, blocks []solver.Stripe) error {
	all, most := make([][]byte, len(blocks)), 0
	for r, b := range blocks {
		all[r] = make([]byte, b.Rows()*m.RowBytes())
		most = max(most, len(all[r]))
	}
	if err := d.CopyRows(ctx, level, RightSide, blocks[x.rank], all[x.rank]); err != nil {
		return err
	}
	for k := 1; k < len(all); k++ {
		for at := 0; at < most; at += len(x.send) {
			if err := x.pass(ctx, all, k, at); err != nil {
				return err
			}
		}
	}
	for r, b := range blocks {
		if err := d.SetRows(ctx, level, RightSide, b, all[r]); err != nil {
			return err
		}
	}
	return nil
}

// pass does the part of step k that begins at byte at of each block.
func (x *HostExchange) pass(ctx context.Context, all [][]byte, k, at int) error {
	part := func(rank int) []byte {
		if rank < 0 || rank >= len(all) || at >= len(all[rank]) {
			return nil
		}
		return all[rank][at:min(len(all[rank]), at+len(x.send))]
	}
	away := [2]int{solver.Top: -1, solver.Bottom: 1}
	return x.swap(ctx, [2]bool{true, true}, func(side solver.Side, message []byte) error {
		copy(message, part(x.rank-away[side]*(k-1)))
		return nil
	}, func(side solver.Side, message []byte) error {
		copy(part(x.rank+away[side]*k), message)
		return nil
	})
}
