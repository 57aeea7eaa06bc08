// Package solver is the Jacobi iteration over one stripe: what is computed, in which order, and when it ends. It knows
// no device and no network; it meets them as Sweeper, Exchange and Reducer.
package solver

import (
	"context"
	"fmt"
	"time"
)

// Options of Run. All ranks must be given the same, but for Stop, Saver and the callbacks; all or none have a Saver.
type Options struct {
	Initial       RowSource // the field at sweep 0, should it be needed again
	Start         Start     // where the field that the sweeper has loaded stands
	Magnitude     Magnitude
	Depth         int     // rows in a halo, as in the sweeper's Layout
	MaxSweeps     int     // most sweeps in a pass, at most what each rank's sweeper can
	Tolerance     float64 // see StopRule
	MaxIterations int     // most sweeps
	// Stop, if not nil, is asked once a pass whether this rank was told to stop. All ranks stop at one sweep.
	Stop func() bool
	// Saver, if not nil, saves the state: every SaveEvery sweeps (0: never of itself), and at the end of the pass in
	// which a rank wishes it. It does not begin before all ranks are done with the state before.
	Saver     Saver
	SaveEvery int
	// OnNorms, if not nil, gets the norms of sweeps first, first+1, ... once they are final, in order.
	OnNorms func(first int, norms []float64) error
}

// Result of Run.
type Result struct {
	Sweeps   int
	Norm     float64 // of the last sweep
	Reason   StopReason
	Decisive *Decisive // the norm that ended the run; nil if none did
	Times    Times
}

// Run sweeps from the field that the sweeper has loaded until the run ends. Afterwards the sweeper's now is the field
// after exactly Result.Sweeps sweeps. The sequence of calls to Exchange and Reducer is a function of the options and of
// the reduced sums alone, so all ranks of a run make the same calls.
func Run(ctx context.Context, s Sweeper, x Exchange, red Reducer, o Options) (Result, error) {
	var times Times
	s, x, red = timedSweeper{s, &times}, timedExchange{x, &times}, timedReducer{red, &times}
	if o.Saver != nil {
		o.Saver = timedSaver{o.Saver, &times}
	}
	engine, err := NewEngine(s, x, o.Depth, o.MaxSweeps, o.Start.Sweeps)
	if err != nil {
		return Result{}, err
	}
	r := &run{Options: o, engine: engine, ending: newEnding(o.Tolerance, o.MaxIterations)}
	r.norms = norms{sweeper: s, reducer: red, lag: s.Limits().Lag, flags: r.flags}
	if err := r.begin(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	err = r.loop(ctx)
	if err == nil {
		err = engine.Return(ctx, r.end(), o.Initial)
	}
	times.Total = time.Since(start)
	if err != nil {
		return Result{Sweeps: engine.Sweeps()}, err
	}
	sweeps, e := engine.Sweeps(), &r.ending
	return Result{Sweeps: sweeps, Norm: e.norm, Reason: e.why(sweeps), Decisive: e.decisive, Times: times}, nil
}

// run is the state of a Run.
type run struct {
	Options
	engine *Engine
	norms  norms
	ending ending
	saving saving
}

// end returns the number of sweeps that the run is to do as far as is known.
func (r *run) end() int { return r.ending.after(r.engine.Sweeps()) }

// loop sweeps until the end of the run is decided and every norm up to it is settled. It may have swept beyond the end
// then, within the newest pass.
func (r *run) loop(ctx context.Context) error {
	for {
		if r.engine.Sweeps() >= r.end() || r.newestMayEnd() {
			if err := r.settle(ctx, 0); err != nil {
				return err
			}
			if r.engine.Sweeps() >= r.end() { // the norms may have brought an end one sweep beyond the newest pass
				return nil
			}
		}
		p, err := r.engine.Advance(ctx, r.end())
		if err != nil {
			return err
		}
		if err := r.norms.add(ctx, p); err != nil {
			return err
		}
		if err := r.settle(ctx, 1); err != nil {
			return err
		}
		if err := r.save(ctx); err != nil {
			return err
		}
	}
}

// newestMayEnd reports whether the newest pass, not settled yet, might hold the end of the run before its last sweep.
// The next pass would overwrite the field that is needed to replay it.
func (r *run) newestMayEnd() bool {
	p, ok := r.norms.newest()
	return ok && r.ending.mayLieWithin(p)
}

// settle waits for the norms of all swept passes but the newest keep, and applies the stop rule to them.
func (r *run) settle(ctx context.Context, keep int) error {
	for {
		p, total, ok, err := r.norms.settle(ctx, keep)
		if err != nil || !ok {
			return err
		}
		r.ending.interrupted = r.ending.interrupted || total.Flags&FlagStop != 0
		r.saving.hear(p, total.Flags)
		norms, err := r.ending.judgePass(p, total.Sums, r.Magnitude)
		if err != nil {
			return err
		}
		if r.OnNorms == nil || len(norms) == 0 {
			continue
		}
		if err := r.OnNorms(p.First, norms); err != nil {
			return err
		}
	}
}

// flags returns what this rank says with its sums.
func (r *run) flags() (f Flags) {
	if r.Stop != nil && r.Stop() {
		f |= FlagStop
	}
	if r.Saver != nil && r.Saver.Wanted() {
		f |= FlagSave
	}
	if r.Saver != nil && r.Saver.Busy() {
		f |= FlagBusy
	}
	return f
}

// begin makes the state that of a run which has done the sweeps of Start.
func (r *run) begin() error {
	s := r.Start
	if s.Sweeps < 0 || len(s.Norms) > s.Sweeps || len(s.Norms) < min(s.Sweeps, StopNorms) {
		return fmt.Errorf("start after sweep %d with %d norms", s.Sweeps, len(s.Norms))
	}
	for i, norm := range s.Norms {
		r.ending.judge(s.Sweeps-len(s.Norms)+i, norm)
	}
	if end := min(r.ending.stop, r.MaxIterations); s.Sweeps > end {
		return fmt.Errorf("start after %d sweeps of a run that ends after %d", s.Sweeps, end)
	}
	r.saving.next = nextSave(s.Sweeps, r.SaveEvery)
	return nil
}

// save saves the state if that is due and nobody is at an earlier one. Norms may still be unknown; a state beyond the
// end that they turn out to bring is of no use, and the Saver learns of the end.
func (r *run) save(ctx context.Context) error {
	sweeps := r.engine.Sweeps()
	if r.Saver == nil || sweeps > r.end() || !r.saving.due(sweeps, r.SaveEvery) {
		return nil
	}
	if err := r.Saver.Save(ctx, sweeps); err != nil {
		return fmt.Errorf("sweep %d: save the state: %w", sweeps-1, err)
	}
	r.saving.began(r.engine.next)
	return nil
}
