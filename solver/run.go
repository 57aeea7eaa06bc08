// Package solver is the Jacobi iteration over one stripe: it defines a sweep, orders the steps of a run, and decides
// when the run ends. It knows neither devices nor networks, only the interfaces Sweeper, Exchange and Reducer.
package solver

import (
	"context"
	"fmt"
	"time"
)

// Options are the parameters of Run. All ranks must be given the same, except for Stop, Saver, the Samplers and the
// callbacks. Either all ranks have a Saver or none has.
type Options struct {
	Initial       RowSource // the field at sweep 0, loaded again if the run must be restarted
	Start         Start     // sweeps that the loaded field has been through
	Magnitude     Magnitude
	Depth         int     // rows in a halo, as in the sweeper's Layout
	MaxSweeps     int     // largest number of sweeps in a pass; every rank's sweeper must be able to do it
	Tolerance     float64 // see StopRule
	MaxIterations int     // largest number of sweeps
	Norms         Cadence // as in the sweeper's Layout
	// Ahead is the number of passes that may be swept before the norms of the oldest of them are waited for, at least
	// 1; 0 counts as 1. The reducer must admit Ahead+1 posted passes that were not waited for. See PassesAhead.
	Ahead int
	// Stop, if not nil, reports whether this rank was asked to stop. Run calls it once a pass. If it returns true on
	// any rank, all ranks stop after the same sweep.
	Stop func() bool
	// Saver, if not nil, saves the state every SaveEvery sweeps (0: only on request), and at the end of a pass soon
	// after a rank requests it. No save begins before all ranks have finished the previous one.
	Saver     Saver
	SaveEvery int
	// Samples read the field while the run goes on. A pass ends where a regular sample is due, and all norms up to
	// there are waited for.
	Samples Samples
	// OnNorms, if not nil, is called in order with norms once they are final: those of sweep first and the next ones
	// that have a norm.
	OnNorms func(first int, norms []float64) error
	// OnPass, if not nil, is called with the number of sweeps done once that many are known to be within the run.
	OnPass func(sweeps int)
	OnStep OnStep // may be nil
}

// Result is the result of Run.
type Result struct {
	Sweeps   int
	Norm     float64 // of the last sweep that has one; NaN if there is none
	Reason   StopReason
	Decisive *Decisive // the norm that ended the run; nil if no norm did
	Times    Times
}

// Run sweeps the field that the sweeper has loaded until the run ends. Afterwards the sweeper's now is the field after
// exactly Result.Sweeps sweeps. The sequence of calls to Exchange and Reducer depends only on the options and the
// reduced contributions, so all ranks of a run make the same calls.
func Run(ctx context.Context, s Sweeper, x Exchange, red Reducer, o Options) (Result, error) {
	watch := &Watch{OnStep: o.OnStep}
	s, x, red, o.Saver = watch.Measure(s, x, red, o.Saver)
	engine, err := NewEngine(s, x, EngineOptions{Depth: o.Depth, MaxSweeps: o.MaxSweeps, Sweeps: o.Start.Sweeps,
		Norms: o.Norms})
	if err != nil {
		return Result{}, err
	}
	o.Ahead = max(1, o.Ahead)
	r := &run{Options: o, engine: engine, ending: newEnding(o.Tolerance, o.MaxIterations, o.Norms), watch: watch}
	r.norms = norms{sweeper: s, reducer: red, cadence: o.Norms, lag: s.Limits().Lag, flags: r.flags}
	if err := r.begin(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	err = r.loop(ctx)
	if err == nil {
		err = engine.Rewind(ctx, r.end(), o.Initial)
	}
	watch.Total = time.Since(start)
	if err != nil {
		return Result{Sweeps: engine.Sweeps()}, err
	}
	sweeps, e := engine.Sweeps(), &r.ending
	return Result{Sweeps: sweeps, Norm: e.norm, Reason: e.reasonAfter(sweeps), Decisive: e.decisive,
		Times: watch.Times}, nil
}

// run is the state of a Run.
type run struct {
	Options
	engine *Engine
	norms  norms
	ending ending
	saving saving
	asked  bool // a rank asks for a sample
	watch  *Watch
}

// end returns the number of sweeps that the run is to do, as far as is known.
func (r *run) end() int { return r.ending.end(r.engine.Sweeps()) }

// loop sweeps until the end of the run is decided and every norm up to it is settled. The field may then be beyond that
// end; Engine.Rewind returns it there.
func (r *run) loop(ctx context.Context) error {
	if err := r.sample(ctx); err != nil {
		return err
	}
	for {
		for r.norms.waiting() > 0 && r.needsNorms() {
			if err := r.settle(ctx, r.norms.waiting()-1); err != nil {
				return err
			}
		}
		if r.engine.Sweeps() >= r.end() { // norms may have moved the end
			return nil
		}
		p, err := r.engine.AdvanceTo(ctx, r.Samples.Next(r.engine.Sweeps()), r.end())
		if err != nil {
			return err
		}
		if err := r.norms.add(ctx, p); err != nil {
			return err
		}
		if err := r.settle(ctx, r.Ahead); err != nil {
			return err
		}
		if err := r.save(ctx); err != nil {
			return err
		}
		if err := r.sample(ctx); err != nil {
			return err
		}
	}
}

// needsNorms reports whether the next pass must wait for norms: because the run is over unless they move its end, or
// because they might end it before that pass. Engine.Rewind goes back to the beginning of the newest pass at most.
func (r *run) needsNorms() bool {
	sweeps := r.engine.Sweeps()
	return sweeps >= r.end() || r.ending.mayEndBefore(sweeps)
}

// settle waits for the norms of all swept passes except the newest keep, and applies the stop rule to them.
func (r *run) settle(ctx context.Context, keep int) error {
	for {
		p, total, ok, err := r.norms.settle(ctx, keep)
		if err != nil || !ok {
			return err
		}
		r.ending.interrupted = r.ending.interrupted || total.Flags&FlagStop != 0
		r.saving.receive(p, total.Flags)
		r.asked = r.asked || total.Flags&FlagSample != 0
		norms, err := r.ending.judgePass(p, total.Sums, r.Magnitude)
		if err != nil {
			return err
		}
		if r.OnNorms != nil && len(norms) > 0 {
			first, _ := r.Norms.Of(p)
			if err := r.OnNorms(first, norms); err != nil {
				return err
			}
		}
		if r.OnPass != nil {
			r.OnPass(min(p.First+p.Sweeps, r.ending.stop))
		}
	}
}

// flags returns the flags that this rank sends with its sums.
func (r *run) flags() Flags { return FlagsOf(r.Stop, r.Saver, r.Samples) }

// begin sets the state to that of a run which has done the sweeps of Start.
func (r *run) begin() error {
	s := r.Start
	all := r.Norms.In(max(0, s.Sweeps)) // norms of the sweeps done
	if s.Sweeps < 0 || len(s.Norms) > all || len(s.Norms) < min(all, StopNorms) {
		return fmt.Errorf("start after sweep %d with %d norms", s.Sweeps, len(s.Norms))
	}
	for i, norm := range s.Norms {
		r.ending.judge(r.Norms.Sweep(all-len(s.Norms)+i), norm)
	}
	r.ending.judged = s.Sweeps
	if end := min(r.ending.stop, r.MaxIterations); s.Sweeps > end {
		return fmt.Errorf("start after %d sweeps of a run that ends after %d", s.Sweeps, end)
	}
	r.saving.next = nextSave(s.Sweeps, r.SaveEvery)
	return nil
}

// save saves the state if a save is due and no rank is busy with an earlier one. Norms of recent sweeps may still be
// unknown. If they end the run at an earlier sweep, the saved state is of no use, and the Saver learns of the end.
func (r *run) save(ctx context.Context) error {
	sweeps := r.engine.Sweeps()
	if r.Saver == nil {
		return nil
	}
	if sweeps >= r.saving.next { // flags that are on their way may say that no rank is busy any more
		if err := r.settle(ctx, 1); err != nil {
			return err
		}
	}
	if sweeps > r.end() || !r.saving.due(sweeps, r.SaveEvery) {
		return nil
	}
	if err := r.Saver.Save(ctx, sweeps); err != nil {
		return fmt.Errorf("sweep %d: save the state: %w", sweeps-1, err)
	}
	r.saving.began(r.engine.next)
	return nil
}

// sample takes a sample if one is due. It first waits for the norms of all sweeps done, so that a sample never comes
// from beyond the end of the run, and no older flag asks for another sample afterwards.
func (r *run) sample(ctx context.Context) error {
	sweeps := r.engine.Sweeps()
	if !r.Samples.Due(sweeps, 1, r.asked) {
		return nil
	}
	if err := r.settle(ctx, 0); err != nil {
		return err
	}
	if sweeps > r.end() {
		return nil
	}
	asked := r.asked
	r.asked = false
	if err := r.Samples.Take(ctx, Sample{Sweeps: sweeps, Norm: r.ending.norm}, 1, asked, r.watch); err != nil {
		return fmt.Errorf("after %d sweeps: %w", sweeps, err)
	}
	return nil
}
