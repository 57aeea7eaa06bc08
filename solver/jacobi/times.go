package jacobi

import (
	"context"
	"time"

	"jacobi/solver"
)

// stepOf returns a step of a pass.
func stepOf(k solver.StepKind, p solver.Pass) solver.Step {
	return solver.Step{Kind: k, Number: p.Index, First: p.First, Sweeps: p.Sweeps}
}

// timedSweeper measures each call of a pass.
type timedSweeper struct {
	solver.Sweeper
	watch *solver.Watch
}

func (s timedSweeper) Edges(ctx context.Context, p solver.Pass) error {
	defer s.watch.End(stepOf(solver.StepEdges, p), time.Now())
	return s.Sweeper.Edges(ctx, p)
}

func (s timedSweeper) Interior(ctx context.Context, p solver.Pass) error {
	defer s.watch.End(stepOf(solver.StepInterior, p), time.Now())
	return s.Sweeper.Interior(ctx, p)
}

func (s timedSweeper) Sums(ctx context.Context, p solver.Pass) ([]solver.Sum, error) {
	defer s.watch.End(stepOf(solver.StepSums, p), time.Now())
	return s.Sweeper.Sums(ctx, p)
}

// timedExchange measures each call.
type timedExchange struct {
	solver.Exchange
	watch            *solver.Watch
	posted, received uint64
}

func (x *timedExchange) Post(ctx context.Context, r solver.HaloRows) error {
	x.posted++
	defer x.watch.End(solver.Step{Kind: solver.StepPost, Number: x.posted}, time.Now())
	return x.Exchange.Post(ctx, r)
}

func (x *timedExchange) Wait(ctx context.Context, r solver.HaloRows) error {
	x.received++
	defer x.watch.End(solver.Step{Kind: solver.StepWait, Number: x.received}, time.Now())
	x.watch.Exchanges++
	return x.Exchange.Wait(ctx, r)
}
