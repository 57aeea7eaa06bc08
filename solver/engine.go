package solver

import (
	"context"
	"fmt"
)

// Engine advances a field by sweeps, one pass after the other, and keeps its halos. It knows no norm and no end: its
// caller says how far to go. A rank may have several, each with a mesh, a sweeper and links of its own.
type Engine struct {
	sweeper   Sweeper
	exchange  Exchange
	depth     int // rows in a halo
	maxSweeps int // most sweeps in a pass

	sweeps   int // done: now is the field after this many
	valid    int // halo rows of now that are right
	next     uint64
	last     Pass           // the newest pass
	sent     ExchangeNumber // the newest exchange that was posted
	received ExchangeNumber // the newest exchange that was waited for
}

// NewEngine returns an Engine for a field that stands after the given number of sweeps and whose halos are filled.
// Passes have at most maxSweeps sweeps, which every rank's sweeper must be able to do; all ranks must be given the same
// numbers.
func NewEngine(s Sweeper, x Exchange, depth, maxSweeps, sweeps int) (*Engine, error) {
	if most := s.Limits().MaxSweeps; maxSweeps < 1 || maxSweeps > most {
		return nil, fmt.Errorf("%d sweeps a pass: the backend does 1 to %d", maxSweeps, most)
	}
	return &Engine{sweeper: s, exchange: x, depth: depth, maxSweeps: maxSweeps, sweeps: sweeps, valid: depth}, nil
}

// Sweeps returns how many sweeps were done: now is the field after this many.
func (e *Engine) Sweeps() int { return e.sweeps }

// Advance does the next pass of a field that is to go on to end sweeps, and returns it: halos in, edges, edges out,
// interior. The sequence of exchanges depends on the sequence of ends alone, so all ranks must be given the same.
func (e *Engine) Advance(ctx context.Context, end int) (Pass, error) {
	p := e.plan(end)
	if e.valid == 0 {
		if err := e.receive(ctx); err != nil {
			return Pass{}, fmt.Errorf("sweep %d: halo exchange: %w", p.First, err)
		}
	}
	if p.Margin == 0 && p.First+p.Sweeps < end {
		if err := e.sweeper.Edges(ctx, p); err != nil {
			return Pass{}, fmt.Errorf("sweep %d: edges: %w", p.First, err)
		}
		if err := e.exchange.Post(ctx, e.sent+1); err != nil {
			return Pass{}, fmt.Errorf("sweep %d: halo exchange: %w", p.First, err)
		}
		e.sent++
	}
	if err := e.sweeper.Interior(ctx, p); err != nil {
		return Pass{}, fmt.Errorf("sweep %d: interior: %w", p.First, err)
	}
	e.sweeps += p.Sweeps
	e.valid = p.Margin
	e.last = p
	e.next++
	return p, nil
}

// plan returns the next pass of a field that is to go on to end sweeps.
func (e *Engine) plan(end int) Pass {
	valid := e.valid
	if valid == 0 {
		valid = e.depth // after the exchange
	}
	sweeps := min(valid, e.maxSweeps, end-e.sweeps)
	p := Pass{Index: e.next, First: e.sweeps, Sweeps: sweeps, Margin: valid - sweeps}
	if e.sweeps+sweeps == end {
		p.Margin = 0 // nobody will read the halo
	}
	return p
}

// receive fills the halos of now.
func (e *Engine) receive(ctx context.Context) error {
	if err := e.exchange.Wait(ctx, e.received+1); err != nil {
		return err
	}
	e.received++
	e.valid = e.depth
	return nil
}

// Return makes now the field after end sweeps, where end is no more than were done. The newest pass is undone and, if
// need be, replayed with fewer sweeps. For an earlier end the field is loaded again from initial, the field at sweep 0.
func (e *Engine) Return(ctx context.Context, end int, initial RowSource) error {
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
		p := Pass{Index: e.last.Index, First: e.sweeps, Sweeps: end - e.sweeps}
		if err := e.sweeper.Interior(ctx, p); err != nil {
			return fmt.Errorf("sweep %d: replay: %w", p.First, err)
		}
	}
	e.sweeps = end
	return nil
}

// restart loads the field at sweep 0 and does end sweeps.
func (e *Engine) restart(ctx context.Context, end int, initial RowSource) error {
	if e.received < e.sent { // neighbours did send; their rows must not be taken for later ones
		if err := e.receive(ctx); err != nil {
			return fmt.Errorf("rewind: halo exchange: %w", err)
		}
	}
	if err := e.sweeper.Load(ctx, initial); err != nil {
		return fmt.Errorf("rewind: load the initial field: %w", err)
	}
	e.sweeps, e.valid = 0, e.depth
	for e.sweeps < end {
		if _, err := e.Advance(ctx, end); err != nil {
			return fmt.Errorf("rewind: %w", err)
		}
	}
	return nil
}
