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

// Measure returns s, x, red and saver, which may be nil, such that the times of their calls are added to t.
func (t *Times) Measure(s Sweeper, x Exchange, red Reducer, saver Saver) (Sweeper, Exchange, Reducer, Saver) {
	if saver != nil {
		saver = timedSaver{saver, t}
	}
	return timedSweeper{s, t}, timedExchange{x, t}, timedReducer{red, t}, saver
}

// since adds the time since start to total.
func since(total *time.Duration, start time.Time) { *total += time.Since(start) }

// timedSweeper adds the time of each call of a pass to Times.Compute.
type timedSweeper struct {
	Sweeper
	times *Times
}

func (s timedSweeper) Edges(ctx context.Context, p Pass) error {
	defer since(&s.times.Compute, time.Now())
	return s.Sweeper.Edges(ctx, p)
}

func (s timedSweeper) Interior(ctx context.Context, p Pass) error {
	defer since(&s.times.Compute, time.Now())
	return s.Sweeper.Interior(ctx, p)
}

func (s timedSweeper) Sums(ctx context.Context, p Pass) ([]Sum, error) {
	defer since(&s.times.Compute, time.Now())
	return s.Sweeper.Sums(ctx, p)
}

// timedExchange adds the time of each call to Times.HaloWait.
type timedExchange struct {
	Exchange
	times *Times
}

func (x timedExchange) Post(ctx context.Context, n ExchangeNumber) error {
	defer since(&x.times.HaloWait, time.Now())
	return x.Exchange.Post(ctx, n)
}

func (x timedExchange) Wait(ctx context.Context, n ExchangeNumber) error {
	defer since(&x.times.HaloWait, time.Now())
	x.times.Exchanges++
	return x.Exchange.Wait(ctx, n)
}

// timedReducer adds the time of each call to Times.NormWait.
type timedReducer struct {
	Reducer
	times *Times
}

func (r timedReducer) Post(ctx context.Context, pass uint64, c Contribution) error {
	defer since(&r.times.NormWait, time.Now())
	return r.Reducer.Post(ctx, pass, c)
}

func (r timedReducer) Wait(ctx context.Context, pass uint64) (Contribution, error) {
	defer since(&r.times.NormWait, time.Now())
	return r.Reducer.Wait(ctx, pass)
}

// timedSaver adds the time of Save to Times.Save.
type timedSaver struct {
	Saver
	times *Times
}

func (s timedSaver) Save(ctx context.Context, sweeps int) error {
	defer since(&s.times.Save, time.Now())
	return s.Saver.Save(ctx, sweeps)
}
