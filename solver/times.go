package solver

import (
	"context"
	"time"
)

// Times are the wall-clock times of one rank within Run, by the clock of the host. A device may sweep while the host
// waits.
type Times struct {
	Total    time.Duration // from the first sweep to the last
	Compute  time.Duration // in the sweeper: sweeping, or launching sweeps and waiting for their sums
	HaloWait time.Duration // sending edge rows, and waiting for those of neighbours
	NormWait time.Duration // posting sums, and waiting for those of other ranks
	Save     time.Duration // copying the state for the Saver
	Sample   time.Duration // in Samplers

	Exchanges uint64 // of halos, received
}

// Measure returns s, x, red and saver, which may be nil, such that w measures their calls.
func (w *Watch) Measure(s Sweeper, x Exchange, red Reducer, saver Saver) (Sweeper, Exchange, Reducer, Saver) {
	if saver != nil {
		saver = timedSaver{saver, w}
	}
	return timedSweeper{s, w}, timedExchange{x, w}, timedReducer{red, w}, saver
}

// stepOf returns a step of a pass.
func stepOf(k StepKind, p Pass) Step {
	return Step{Kind: k, Number: p.Index, First: p.First, Sweeps: p.Sweeps}
}

// timedSweeper measures each call of a pass.
type timedSweeper struct {
	Sweeper
	watch *Watch
}

func (s timedSweeper) Edges(ctx context.Context, p Pass) error {
	defer s.watch.End(stepOf(StepEdges, p), time.Now())
	return s.Sweeper.Edges(ctx, p)
}

func (s timedSweeper) Interior(ctx context.Context, p Pass) error {
	defer s.watch.End(stepOf(StepInterior, p), time.Now())
	return s.Sweeper.Interior(ctx, p)
}

func (s timedSweeper) Sums(ctx context.Context, p Pass) ([]Sum, error) {
	defer s.watch.End(stepOf(StepSums, p), time.Now())
	return s.Sweeper.Sums(ctx, p)
}

// timedExchange measures each call.
type timedExchange struct {
	Exchange
	watch *Watch
}

func (x timedExchange) Post(ctx context.Context, n ExchangeNumber) error {
	defer x.watch.End(Step{Kind: StepPost, Number: uint64(n)}, time.Now())
	return x.Exchange.Post(ctx, n)
}

func (x timedExchange) Wait(ctx context.Context, n ExchangeNumber) error {
	defer x.watch.End(Step{Kind: StepWait, Number: uint64(n)}, time.Now())
	x.watch.Exchanges++
	return x.Exchange.Wait(ctx, n)
}

// timedReducer measures each call.
type timedReducer struct {
	Reducer
	watch *Watch
}

func (r timedReducer) Post(ctx context.Context, pass uint64, c Contribution) error {
	defer r.watch.End(Step{Kind: StepPostNorm, Number: pass}, time.Now())
	return r.Reducer.Post(ctx, pass, c)
}

func (r timedReducer) Wait(ctx context.Context, pass uint64) (Contribution, error) {
	defer r.watch.End(Step{Kind: StepWaitNorm, Number: pass}, time.Now())
	return r.Reducer.Wait(ctx, pass)
}

// timedSaver measures Save.
type timedSaver struct {
	Saver
	watch *Watch
}

func (s timedSaver) Save(ctx context.Context, sweeps int) error {
	defer s.watch.End(Step{Kind: StepSave, First: sweeps}, time.Now())
	return s.Saver.Save(ctx, sweeps)
}
