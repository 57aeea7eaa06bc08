package jacobi

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// Engine advances a field pass by pass and keeps its halos filled. It knows neither norms nor the end of the run: its
// caller says how far to go. A rank may have several engines, each with its own mesh, sweeper and links.
type Engine struct {
	sweeper   solver.Sweeper
	rows      solver.HaloRows // of the sweeper
	exchange  solver.Exchange
	depth     int // rows in a halo
	maxSweeps int // largest number of sweeps in a pass
	align     int // passes that are not short for another reason end at multiples of this; 0: anywhere

	sweeps int         // done so far: now is the field after this many
	valid  int         // halo rows of now that hold current values
	next   uint64      // index of the next pass
	last   solver.Pass // the newest pass
	posted bool        // an exchange is posted and not waited for
}

// EngineOptions are the same on all ranks.
type EngineOptions struct {
	Depth     int            // rows in a halo, as in the sweeper's Layout
	MaxSweeps int            // largest number of sweeps in a pass, which every rank's sweeper must be able to do
	Sweeps    int            // that the loaded field has been through
	Norms     solver.Cadence // as in the sweeper's Layout
}

// Rows are the part of a solver.Backend that an Engine needs.
type Rows interface {
	solver.Sweeper
	solver.HaloRows
}

// NewEngine returns an Engine for a loaded field whose halos are filled.
func NewEngine(b Rows, x solver.Exchange, o EngineOptions) (*Engine, error) {
	if limit := b.Limits().MaxSweeps; o.MaxSweeps < 1 || o.MaxSweeps > limit {
		return nil, fmt.Errorf("%d sweeps a pass: the backend does 1 to %d", o.MaxSweeps, limit)
	}
	return &Engine{sweeper: b, rows: b, exchange: x, depth: o.Depth, maxSweeps: o.MaxSweeps, sweeps: o.Sweeps,
		valid: o.Depth, align: o.align()}, nil
}

// align returns the sweeps of a pass if norms are due at ends of passes alone, as long as passes end at multiples of
// that; otherwise 0. Passes get out of step where a run goes on from a state, or takes a sample.
func (o EngineOptions) align() int {
	pass := min(o.Depth, o.MaxSweeps)
	if s := max(1, o.Norms.Stride); s == 1 || o.Norms != solver.EveryNth(s) || s%pass != 0 || o.Depth%pass != 0 {
		return 0
	}
	return pass
}

// Done returns the number of sweeps done: now is the field after that many.
func (e *Engine) Done() int { return e.sweeps }

// Advance does the next pass of a run that ends after end sweeps, and returns it. The pass ends at the latest after to
// sweeps, at which the run stops on its way. If the halos are used up, it first waits for new ones. In the last
// pass before an exchange it sweeps the edges first and sends them before it sweeps the interior. The sequence of
// exchanges depends only on the sequence of arguments, so all ranks must pass the same.
func (e *Engine) Advance(ctx context.Context, to, end int) (solver.Pass, error) {
	p := e.plan(to, end)
	if e.valid == 0 {
		if err := e.receive(ctx); err != nil {
			return solver.Pass{}, fmt.Errorf("sweep %d: halo exchange: %w", p.First, err)
		}
	}
	if p.Margin == 0 && p.First+p.Sweeps < end {
		if err := e.sweeper.Edges(ctx, p); err != nil {
			return solver.Pass{}, fmt.Errorf("sweep %d: edges: %w", p.First, err)
		}
		if err := e.exchange.Post(ctx, e.rows); err != nil {
			return solver.Pass{}, fmt.Errorf("sweep %d: halo exchange: %w", p.First, err)
		}
		e.posted = true
	}
	if err := e.sweeper.Interior(ctx, p); err != nil {
		return solver.Pass{}, fmt.Errorf("sweep %d: interior: %w", p.First, err)
	}
	e.sweeps += p.Sweeps
	e.valid = p.Margin
	e.last = p
	e.next++
	return p, nil
}

// plan returns the next pass, up to the given number of sweeps at most, of a run that ends after end sweeps.
func (e *Engine) plan(to, end int) solver.Pass {
	valid := e.valid
	if valid == 0 {
		valid = e.depth // after the exchange
	}
	sweeps := min(valid, e.maxSweeps, to-e.sweeps, end-e.sweeps)
	p := solver.Pass{Index: e.next, First: e.sweeps, Sweeps: sweeps, Margin: valid - sweeps}
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

// receive fills the halos of now.
func (e *Engine) receive(ctx context.Context) error {
	if err := e.exchange.Wait(ctx, e.rows); err != nil {
		return err
	}
	e.posted, e.valid = false, e.depth
	return nil
}

// Rewind makes now the field after end sweeps, where end is at most the number done. It undoes the newest pass and, if
// need be, replays it with fewer sweeps. If end lies before the newest pass, it starts again from initial, the field at
// sweep 0.
func (e *Engine) Rewind(ctx context.Context, end int, initial solver.RowSource) error {
	if e.sweeps == end {
		return nil
	}
	if end < e.last.First {
		return e.restart(ctx, end, initial)
	}
	if err := e.sweeper.Undo(); err != nil {
		return fmt.Errorf("sweep %d: undo: %w", e.last.First, err)
	}
	e.sweeps = e.last.First
	if end > e.sweeps {
		p := solver.Pass{Index: e.last.Index, First: e.sweeps, Sweeps: end - e.sweeps}
		if err := e.sweeper.Interior(ctx, p); err != nil {
			return fmt.Errorf("sweep %d: replay: %w", p.First, err)
		}
	}
	e.sweeps = end
	return nil
}

// restart loads the field at sweep 0 and does end sweeps.
func (e *Engine) restart(ctx context.Context, end int, initial solver.RowSource) error {
	if err := e.Reload(ctx, initial); err != nil {
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
	if e.posted { // receive the rows in flight, or a later Wait would get them
		if err := e.receive(ctx); err != nil {
			return fmt.Errorf("halo exchange: %w", err)
		}
	}
	if err := e.sweeper.Load(ctx, initial); err != nil {
		return fmt.Errorf("load the initial field: %w", err)
	}
	e.sweeps, e.valid = 0, e.depth
	return nil
}
