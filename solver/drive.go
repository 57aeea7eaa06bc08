// Package solver drives an iteration over one stripe: it orders the steps of a run, adds its norms over all ranks,
// decides when it ends, and has its states saved and its field sampled meanwhile. Methods are packages of their own,
// each with an Iteration. The package knows neither devices nor networks, only interfaces such as Sweeper, Exchange and
// Reducer.
package solver

import (
	"context"
	"fmt"
	"time"
)

// Options are the parameters of Drive. All ranks must be given the same, except for Stop, Saver, the Samplers and the
// callbacks. Either all ranks have a Saver or none has.
type Options struct {
	Start         Start // iterations that the loaded field has been through
	Magnitude     Magnitude
	Goal          Goal
	MaxIterations int // largest number of iterations
	// Stop, if not nil, reports whether this rank was asked to stop. Drive calls it once a pass. If it returns true on
	// any rank, all ranks stop after the same iteration.
	Stop func() bool
	// Saver, if not nil, saves the state every SaveEvery iterations (0: only on request), and at the end of a pass soon
	// after a rank requests it. No save begins before all ranks have finished the previous one.
	Saver     Saver
	SaveEvery int
	// Samples read the field while the run goes on. All norms up to a sample are waited for.
	Samples Samples
	// OnNorms, if not nil, is called in order with norms once they are final: those of iteration first and the next
	// ones that have a norm. The norms are valid until it returns.
	OnNorms func(first int, norms []float64) error
	// OnPass, if not nil, is called with the number of iterations done once that many are known to be within the run.
	OnPass func(done int)
}

// Result is the result of Drive.
type Result struct {
	Iterations int     // or cycles: the iterations done
	Norm       float64 // of the last iteration that has one; NaN if there is none
	Reason     StopReason
	Decisive   *Decisive // the norm that ended the run; nil if no norm did
	Base       float64   // of the Goal; 0 if the run has no norm
	Times      Times
}

// Drive iterates until the run ends. Afterwards the field is the one after exactly Result.Iterations. The sequence of
// calls to the Iteration and the Reducer depends only on the options and the reduced contributions, so all ranks of a
// run make the same calls.
func Drive(ctx context.Context, it Iteration, sums *Reductions, o Options) (Result, error) {
	traits, watch := it.Traits(), sums.Watch
	d := &drive{Options: o, it: it, traits: traits, watch: watch, ending: newEnding(traits, o.Goal, o.MaxIterations),
		norms: norms{it: it, traits: traits, sums: sums}}
	d.norms.flags = d.flags
	if err := d.begin(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	err := d.loop(ctx)
	if err == nil {
		err = it.Finish(ctx, d.end())
	}
	watch.Total = time.Since(start)
	if err == nil {
		err = it.Leave(ctx)
	}
	if err != nil {
		return Result{Iterations: it.Done()}, err
	}
	e := &d.ending
	return Result{Iterations: it.Done(), Norm: e.norm, Reason: e.reasonAfter(it.Done()), Decisive: e.decisive,
		Base: e.rule.Base, Times: watch.Times}, nil
}

// drive is the state of a Drive.
type drive struct {
	Options
	it     Iteration
	traits Traits
	norms  norms
	ending ending
	saving saving
	newest Pass
	asked  bool // a rank asks for a sample
	watch  *Watch
}

// end returns the number of iterations that the run is to do, as far as is known.
func (d *drive) end() int { return d.ending.end(d.it.Done()) }

// flags returns the flags that this rank sends with its sums.
func (d *drive) flags() (f Flags) {
	if d.Stop != nil && d.Stop() {
		f |= FlagStop
	}
	if d.Saver != nil && d.Saver.Wanted() {
		f |= FlagSave
	}
	if d.Saver != nil && d.Saver.Busy() {
		f |= FlagBusy
	}
	if d.Samples.wanted() {
		f |= FlagSample
	}
	return f
}

// begin sets the state to that of a run which has done the iterations of Start.
func (d *drive) begin() error {
	s := d.Start
	all := d.traits.Norms.In(max(0, s.Iterations)) // norms of the iterations done
	if s.Iterations < 0 || len(s.Norms) > all || len(s.Norms) < min(all, StopNorms) {
		return fmt.Errorf("start after %s %d with %d norms", d.traits.Unit, s.Iterations, len(s.Norms))
	}
	d.ending.resume(s)
	if end := min(d.ending.stop, d.MaxIterations); s.Iterations > end {
		return fmt.Errorf("start after %d %ss of a run that ends after %d", s.Iterations, d.traits.Unit, end)
	}
	d.saving = saving{every: d.SaveEvery, next: nextSave(s.Iterations, d.SaveEvery)}
	return nil
}

// loop iterates until the end of the run is decided and every norm up to it is settled. The field may then be beyond
// that end; Iteration.Finish returns it there.
func (d *drive) loop(ctx context.Context) error {
	p, err := d.it.Begin(ctx)
	for err == nil {
		if err := d.take(ctx, p); err != nil {
			return err
		}
		for d.norms.waiting() > 0 && d.needsNorms() {
			if err := d.settle(ctx, d.norms.waiting()-1); err != nil {
				return err
			}
		}
		done := d.it.Done()
		if done >= d.end() { // norms may have moved the end
			return nil
		}
		p, err = d.it.Advance(ctx, d.Samples.next(done), d.end())
	}
	return err
}

// take takes a pass: it hands in the sums, settles the passes that are Ahead behind, and has the field saved and
// sampled.
func (d *drive) take(ctx context.Context, p Pass) error {
	if p.Sweeps > 0 {
		d.newest = p
		if err := d.norms.add(ctx, p); err != nil {
			return err
		}
		if err := d.settle(ctx, d.traits.Ahead); err != nil {
			return err
		}
	}
	if err := d.save(ctx); err != nil {
		return err
	}
	return d.sample(ctx)
}

// needsNorms reports whether the next pass must wait for norms: because the run is over unless they move its end, or
// because they might end it before that pass. Finish can undo the newest pass cheaply, but not an earlier one.
func (d *drive) needsNorms() bool {
	done := d.it.Done()
	return done >= d.end() || d.ending.mayEndBefore(done)
}

// settle waits for the norms of all passes done except the newest keep, and applies the stop rule to them.
func (d *drive) settle(ctx context.Context, keep int) error {
	for {
		p, total, ok, err := d.norms.settle(ctx, keep)
		if err != nil || !ok {
			return err
		}
		d.ending.interrupted = d.ending.interrupted || total.Flags&FlagStop != 0
		d.saving.receive(p.Index, total.Flags)
		d.asked = d.asked || total.Flags&FlagSample != 0
		norms, err := d.ending.judgePass(ctx, p, total.Sums, d.Magnitude)
		if err != nil {
			return err
		}
		if d.OnNorms != nil && len(norms) > 0 {
			first, _ := d.traits.Norms.Of(p)
			if err := d.OnNorms(first, norms); err != nil {
				return err
			}
		}
		if d.OnPass != nil {
			d.OnPass(min(p.First+p.Sweeps, d.ending.stop, d.it.Done()))
		}
	}
}

// save saves the state if a save is due and no rank is busy with an earlier one. Norms of recent iterations may still
// be unknown. If they end the run at an earlier iteration, the saved state is of no use. The caller of Drive then tells
// the Saver of the end, and the Saver saves that state where a run may go on from it.
func (d *drive) save(ctx context.Context) error {
	done := d.it.Done()
	if d.Saver == nil || done == d.Start.Iterations {
		return nil
	}
	if done >= d.saving.next { // flags that are on their way may say that no rank is busy any more
		if err := d.settle(ctx, min(1, d.traits.Ahead)); err != nil {
			return err
		}
	}
	if done >= d.end() || !d.saving.due(done) {
		return nil
	}
	step := Step{Kind: StepSave, First: done}
	if err := d.watch.Do(step, func() error { return d.Saver.Save(ctx, done) }); err != nil {
		return fmt.Errorf("%s %d: save the state: %w", d.traits.Unit, d.newest.First+d.newest.Sweeps-1, err)
	}
	d.saving.began(d.newest.Index + 1)
	return nil
}

// sample takes a sample if one is due. It first waits for the norms of all iterations done, so that a sample never
// comes from beyond the end of the run, and no older flag asks for another sample afterwards.
func (d *drive) sample(ctx context.Context) error {
	done := d.it.Done()
	if !d.Samples.due(done, d.asked) {
		return nil
	}
	if err := d.settle(ctx, 0); err != nil {
		return err
	}
	if done > d.end() {
		return nil
	}
	asked := d.asked
	d.asked = false
	if err := d.Samples.take(ctx, Sample{Iterations: done}, asked, d.watch); err != nil {
		return fmt.Errorf("after %d %ss: %w", done, d.traits.Unit, err)
	}
	return nil
}
