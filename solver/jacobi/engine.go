// Package jacobi is Jacobi's method: an Engine advances the field by sweeps, several of them in a pass.
package jacobi

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// Engine is a solver.Iteration whose iterations are sweeps. It advances a field pass by pass and keeps its halos
// filled. The norm of a sweep is that of its update, which is known after the sweep; a run ends one sweep after the one
// whose norm ends it. A rank may have several engines, each with its own mesh, sweeper and links.
type Engine struct {
	Options
	sweeper  solver.Sweeper
	exchange solver.Exchange
	watch    *solver.Watch
	align    int // passes that are not short for another reason end at multiples of this; 0: anywhere

	sweeps       int         // done so far: now is the field after this many
	validRows    int         // halo rows of now that hold current values
	next         uint64      // index of the next pass
	last         solver.Pass // the newest pass
	posts, waits uint64      // exchanges posted, and waited for
}

// Options are the parameters of an Engine, the same on all ranks.
type Options struct {
	Depth     int              // rows in a halo, as in the sweeper's Layout
	MaxSweeps int              // largest number of sweeps in a pass, which every rank's sweeper must be able to do
	Sweeps    int              // that the loaded field has been through
	Norms     solver.Cadence   // as in the sweeper's Layout
	Initial   solver.RowSource // the field at sweep 0, loaded again if the run must be restarted
	// Ahead is the number of passes that may be swept before the norms of the oldest of them are waited for, at least
	// 1; 0 counts as 1. See PassesAhead.
	Ahead int
}

// New returns an Engine for a field that b has loaded, with its halos. w measures the calls.
func New(b solver.Sweeper, x solver.Exchange, w *solver.Watch, o Options) (*Engine, error) {
	if limit := b.Limits().MaxSweeps; o.MaxSweeps < 1 || o.MaxSweeps > limit {
		return nil, fmt.Errorf("%d sweeps a pass: the backend does 1 to %d", o.MaxSweeps, limit)
	}
	return &Engine{Options: o, sweeper: b, exchange: x, watch: w, align: o.align(), sweeps: o.Sweeps,
		validRows: o.Depth}, nil
}

// align returns the sweeps of a pass if norms are due at ends of passes alone, as long as passes end at multiples of
// that; otherwise 0. Passes get out of step where a run goes on from a state, or takes a sample.
func (o Options) align() int {
	pass := min(o.Depth, o.MaxSweeps)
	if s := max(1, o.Norms.Stride); s == 1 || o.Norms != solver.EveryNth(s) || s%pass != 0 || o.Depth%pass != 0 {
		return 0
	}
	return pass
}

const (
	// These bound the passes ahead beyond the first: in number, in sweeps, and in updates of points of the largest
	// stripe. A GPU does maxWorkAhead updates in about a millisecond, the time of several messages between nodes. A
	// core takes 0.3 s in float32 and 0.7 s in float64; a request to stop is as late.
	maxAhead       = 32
	maxSweepsAhead = 512
	maxWorkAhead   = 1 << 31
)

// PassesAhead returns how many passes of the given number of sweeps to sweep before the norms of the oldest of them are
// waited for: Options.Ahead of a run over stripes. It is the same on all ranks.
func PassesAhead(m solver.Mesh, stripes []solver.Stripe, sweeps int) int {
	rows := 0
	for _, s := range stripes {
		rows = max(rows, s.Rows())
	}
	return 1 + min(maxAhead, maxSweepsAhead/sweeps, maxWorkAhead/(rows*m.NX*sweeps))
}

// Traits implements solver.Iteration.
func (e *Engine) Traits() solver.Traits {
	return solver.Traits{Unit: "sweep", Norms: e.Norms, Lag: e.sweeper.Limits().Lag, Ahead: max(1, e.Ahead), Delay: 2,
		Stall: &solver.Repeats{}}
}

// Done implements solver.Iteration.
func (e *Engine) Done() int { return e.sweeps }

// Begin implements solver.Iteration.
func (*Engine) Begin(context.Context) (solver.Pass, error) { return solver.Pass{}, nil }

// Leave implements solver.Iteration.
func (*Engine) Leave(context.Context) error { return nil }

// Sums implements solver.Iteration.
func (e *Engine) Sums(ctx context.Context, p solver.Pass) (sums []solver.Sum, err error) {
	err = e.timed(solver.StepSums, p, func() error { sums, err = e.sweeper.Sums(ctx, p); return err })
	return sums, err
}

// Advance implements solver.Iteration. If the halos are used up, it first waits for new ones. In the last pass before
// an exchange it sweeps the edges first and sends them before it sweeps the interior. The sequence of exchanges depends
// only on the sequence of arguments.
func (e *Engine) Advance(ctx context.Context, to, end int) (solver.Pass, error) {
	p := e.plan(to, end)
	if e.validRows == 0 {
		if err := e.receive(ctx); err != nil {
			return solver.Pass{}, fmt.Errorf("sweep %d: halo exchange: %w", p.First, err)
		}
	}
	if p.Margin == 0 && p.First+p.Sweeps < end {
		if err := e.timed(solver.StepEdges, p, func() error { return e.sweeper.Edges(ctx, p) }); err != nil {
			return solver.Pass{}, fmt.Errorf("sweep %d: edges: %w", p.First, err)
		}
		if err := e.post(ctx); err != nil {
			return solver.Pass{}, fmt.Errorf("sweep %d: halo exchange: %w", p.First, err)
		}
	}
	if err := e.interior(ctx, p); err != nil {
		return solver.Pass{}, fmt.Errorf("sweep %d: interior: %w", p.First, err)
	}
	e.sweeps += p.Sweeps
	e.validRows = p.Margin
	e.last = p
	e.next++
	return p, nil
}

// plan returns the next pass, up to the given number of sweeps at most, of a run that ends after end sweeps.
func (e *Engine) plan(to, end int) solver.Pass {
	rows := e.validRows
	if rows == 0 {
		rows = e.Depth // after the exchange
	}
	sweeps := min(rows, e.MaxSweeps, to-e.sweeps, end-e.sweeps)
	p := solver.Pass{Index: e.next, First: e.sweeps, Sweeps: sweeps, Margin: rows - sweeps}
	if e.align > 0 && e.sweeps%e.align != 0 {
		if rest := e.align - e.sweeps%e.align; sweeps >= rest {
			p.Sweeps, p.Margin = rest, 0 // an exchange, so that the next passes are whole
		}
	}
	if e.sweeps+p.Sweeps == end {
		p.Margin = 0 // no later pass reads the halo
	}
	return p
}

// timed measures f as a step of a pass.
func (e *Engine) timed(k solver.StepKind, p solver.Pass, f func() error) error {
	return e.watch.Do(solver.Step{Kind: k, Number: p.Index, First: p.First, Sweeps: p.Sweeps}, f)
}

func (e *Engine) interior(ctx context.Context, p solver.Pass) error {
	return e.timed(solver.StepInterior, p, func() error { return e.sweeper.Interior(ctx, p) })
}

// post sends the edges of next.
func (e *Engine) post(ctx context.Context) error {
	e.posts++
	return e.watch.Do(solver.Step{Kind: solver.StepPost, Number: e.posts},
		func() error { return e.exchange.Post(ctx, e.sweeper) })
}

// receive fills the halos of now.
func (e *Engine) receive(ctx context.Context) error {
	e.waits++
	e.watch.Exchanges++
	e.validRows = e.Depth
	return e.watch.Do(solver.Step{Kind: solver.StepWait, Number: e.waits},
		func() error { return e.exchange.Wait(ctx, e.sweeper) })
}

// Finish implements solver.Iteration. It undoes the newest pass and, if need be, replays it with fewer sweeps. If end
// lies before the newest pass, it starts again from the field at sweep 0.
func (e *Engine) Finish(ctx context.Context, end int) error {
	if e.sweeps == end {
		return nil
	}
	if end < e.last.First {
		return e.restart(ctx, end)
	}
	if err := e.sweeper.Undo(); err != nil {
		return fmt.Errorf("sweep %d: undo: %w", e.last.First, err)
	}
	e.sweeps = e.last.First
	if end > e.sweeps {
		p := solver.Pass{Index: e.last.Index, First: e.sweeps, Sweeps: end - e.sweeps}
		if err := e.interior(ctx, p); err != nil {
			return fmt.Errorf("sweep %d: replay: %w", p.First, err)
		}
	}
	e.sweeps = end
	return nil
}

// restart loads the field at sweep 0 and does end sweeps.
func (e *Engine) restart(ctx context.Context, end int) error {
	if err := e.Reload(ctx, e.Initial); err != nil {
		return fmt.Errorf("rewind: %w", err)
	}
	for e.sweeps < end {
		if _, err := e.Advance(ctx, end, end); err != nil {
			return fmt.Errorf("rewind: %w", err)
		}
	}
	return nil
}

// Reload makes now the field at sweep 0, which initial yields. All ranks must call it after the same pass.
func (e *Engine) Reload(ctx context.Context, initial solver.RowSource) error {
	if e.posts != e.waits { // receive the rows in flight, or a later Wait would get them
		if err := e.receive(ctx); err != nil {
			return fmt.Errorf("halo exchange: %w", err)
		}
	}
	if err := e.sweeper.Load(ctx, initial); err != nil {
		return fmt.Errorf("load the initial field: %w", err)
	}
	e.sweeps, e.validRows = 0, e.Depth
	return nil
}
