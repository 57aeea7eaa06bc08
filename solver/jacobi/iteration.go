// Package jacobi is Jacobi's method: an Engine advances the field by sweeps, several of them in a pass.
package jacobi

import (
	"context"

	"jacobi/solver"
)

// Options are the parameters of an Iteration, the same on all ranks.
type Options struct {
	EngineOptions
	Initial solver.RowSource // the field at sweep 0, loaded again if the run must be restarted
	// Ahead is the number of passes that may be swept before the norms of the oldest of them are waited for, at least
	// 1; 0 counts as 1. See PassesAhead.
	Ahead int
}

// Iteration is a solver.Iteration whose iterations are sweeps. The norm of a sweep is that of its update, which is
// known after the sweep. A run ends one sweep after the one whose norm ends it.
type Iteration struct {
	*Engine
	sweeper solver.Sweeper
	initial solver.RowSource
	traits  solver.Traits
}

// New returns the Iteration of a field that b has loaded, with its halos. Afterwards its now is the
// field after exactly the sweeps of the run. w measures the calls.
func New(b Rows, x solver.Exchange, w *solver.Watch, o Options) (*Iteration, error) {
	e, err := NewEngine(b, &timedExchange{Exchange: x, watch: w}, o.EngineOptions)
	if err != nil {
		return nil, err
	}
	s := timedSweeper{b, w}
	e.sweeper = s
	return &Iteration{Engine: e, sweeper: s, initial: o.Initial, traits: solver.Traits{Unit: "sweep", Norms: o.Norms,
		Lag: s.Limits().Lag, Ahead: max(1, o.Ahead), Delay: 2, Stall: &solver.Repeats{}}}, nil
}

// Traits implements solver.Iteration.
func (it *Iteration) Traits() solver.Traits { return it.traits }

// Begin implements solver.Iteration.
func (*Iteration) Begin(context.Context) (solver.Pass, error) { return solver.Pass{}, nil }

// Sums implements solver.Iteration.
func (it *Iteration) Sums(ctx context.Context, p solver.Pass) ([]solver.Sum, error) {
	return it.sweeper.Sums(ctx, p)
}

// Finish implements solver.Iteration.
func (it *Iteration) Finish(ctx context.Context, end int) error {
	return it.Rewind(ctx, end, it.initial)
}

// Leave implements solver.Iteration.
func (*Iteration) Leave(context.Context) error { return nil }
