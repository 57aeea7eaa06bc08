package chebyshev

import (
	"context"
	"fmt"
	"math"
	"time"

	"jacobi/solver"
)

// Options are the parameters of Run. All ranks must be given the same, except for Stop, Saver, the Samplers and the
// callbacks.
type Options struct {
	Plan *Plan
	// Start describes the loaded field, which has been through no sweeps or ends with a plain one. Norms are those of
	// the plain sweeps done.
	Start         solver.Start
	Magnitude     solver.Magnitude // of the sweeper's Layout
	Depth         int              // rows in a halo, as in the sweeper's Layout
	MaxSweeps     int              // largest number of sweeps in a pass; every rank's sweeper must be able to do it
	Tolerance     float64          // the run ends when a norm is at most Tolerance,
	Relative      float64          // or at most Relative times the first norm
	MaxIterations int              // largest number of sweeps; see Plan.Last
	// Stop, if not nil, reports whether this rank was asked to stop; it is called at each plain sweep.
	Stop func() bool
	// Saver, if not nil, saves the state at the first plain sweep after each SaveEvery sweeps (0: only on request).
	Saver     solver.Saver
	SaveEvery int
	Samples   solver.Samples // taken of the initial field and after plain sweeps
	// OnNorm, if not nil, is called with the norm of each plain sweep.
	OnNorm func(sweep int, norm float64) error
	// OnPass, if not nil, is called after each pass with the number of sweeps done.
	OnPass func(sweeps int)
	OnStep solver.OnStep // may be nil
}

// A run has stalled if the norm has not fallen by a half within a cycle, in which it should fall to a 500th.
const (
	patience = Quarters
	fall     = 0.5
)

// StopRule returns the rule by which a run with these keys ends.
func StopRule(tolerance, relative float64) solver.CycleRule {
	return solver.CycleRule{Tolerance: tolerance, Relative: relative, Patience: patience, Fall: fall}
}

// Run sweeps the field that the sweeper has loaded until the run ends, which it does after a plain sweep. The sweeper's
// Layout is one of Plan.Fit. All ranks of a run make the same calls of x and red.
func Run(ctx context.Context, s solver.Sweeper, x solver.Exchange, red solver.Reducer,
	o Options) (solver.Result, error) {
	watch := &solver.Watch{OnStep: o.OnStep}
	s, x, red, o.Saver = watch.Measure(s, x, red, o.Saver)
	r := &run{Options: o, sweeper: s, reducer: red, rule: StopRule(o.Tolerance, o.Relative),
		saving: solver.NewCycleSaving(o.Start.Sweeps, o.SaveEvery), norm: math.NaN(), watch: watch}
	if err := r.begin(); err != nil {
		return solver.Result{}, err
	}
	var err error
	r.engine, err = solver.NewEngine(s, x, solver.EngineOptions{Depth: o.Depth, MaxSweeps: o.MaxSweeps,
		Sweeps: o.Start.Sweeps, Weights: o.Plan.Weights})
	if err != nil {
		return solver.Result{}, err
	}
	start := time.Now()
	reason, err := r.loop(ctx)
	watch.Total = time.Since(start)
	if err != nil {
		return solver.Result{Sweeps: r.engine.Sweeps()}, err
	}
	result := solver.Result{Sweeps: r.engine.Sweeps(), Norm: r.norm, Reason: reason, Times: watch.Times}
	if reason == solver.Converged || reason == solver.Stalled {
		result.Decisive = &solver.Decisive{Sweep: result.Sweeps - 1, Norm: r.norm}
	}
	return result, nil
}

// run is the state of a Run.
type run struct {
	Options
	sweeper solver.Sweeper
	reducer solver.Reducer
	engine  *solver.Engine
	end     int     // sweeps after which the run ends at the latest
	norm    float64 // of the last plain sweep
	reduced uint64  // norms
	rule    solver.CycleRule
	saving  solver.CycleSaving
	watch   *solver.Watch
}

// begin sets the state to that of a run which has done the sweeps of Start.
func (r *run) begin() (err error) {
	s := r.Start
	if s.Sweeps < 0 || s.Sweeps > 0 && (s.Sweeps%r.Plan.Stride != 1 || len(s.Norms) == 0) {
		return fmt.Errorf("start after %d sweeps with %d norms: norms are %d sweeps apart", s.Sweeps, len(s.Norms),
			r.Plan.Stride)
	}
	r.rule.First = s.First
	for _, norm := range s.Norms {
		r.norm = norm
		if reason := r.rule.Add(norm); reason != "" {
			return fmt.Errorf("start after %d sweeps of a run that has ended: %s", s.Sweeps, reason)
		}
	}
	if r.end, err = r.Plan.Last(r.MaxIterations); err == nil && s.Sweeps > r.end {
		err = fmt.Errorf("start after %d sweeps of a run that ends after %d", s.Sweeps, r.end)
	}
	return err
}

// loop sweeps until the run ends, and returns why it ended.
func (r *run) loop(ctx context.Context) (solver.StopReason, error) {
	if err := r.sample(ctx, 0); err != nil {
		return "", err
	}
	for r.engine.Sweeps() < r.end {
		p, err := r.engine.Advance(ctx, r.end)
		if err != nil {
			return "", err
		}
		if r.OnPass != nil {
			r.OnPass(r.engine.Sweeps())
		}
		if p.Weighted {
			continue
		}
		flags, err := r.reduce(ctx, p)
		if err != nil {
			return "", err
		}
		if r.OnNorm != nil {
			if err := r.OnNorm(p.First, r.norm); err != nil {
				return "", err
			}
		}
		if err := r.sample(ctx, flags); err != nil {
			return "", err
		}
		if reason := r.ends(flags); reason != "" {
			return reason, nil
		}
		if err := r.save(ctx, flags); err != nil {
			return "", err
		}
	}
	return solver.MaxIterations, nil
}

// ends returns why the run ends with the present field, or "".
func (r *run) ends(flags solver.Flags) solver.StopReason {
	reason := r.rule.Add(r.norm)
	switch {
	case reason != "":
		return reason
	case r.engine.Sweeps() >= r.end:
		return solver.MaxIterations
	case flags&solver.FlagStop != 0:
		return solver.Interrupted
	}
	return ""
}

// reduce sets norm to that of the plain sweep p and returns the flags of all ranks.
func (r *run) reduce(ctx context.Context, p solver.Pass) (solver.Flags, error) {
	fail := func(err error) (solver.Flags, error) { return 0, fmt.Errorf("sweep %d: norm: %w", p.First, err) }
	sums, err := r.sweeper.Sums(ctx, p)
	if err != nil {
		return fail(err)
	}
	c := solver.Contribution{Sums: sums, Flags: solver.FlagsOf(r.Stop, r.Saver, r.Samples)}
	if err := r.reducer.Post(ctx, r.reduced, c); err != nil {
		return fail(err)
	}
	total, err := r.reducer.Wait(ctx, r.reduced)
	if err != nil {
		return fail(err)
	}
	if len(total.Sums) != 1 {
		return fail(fmt.Errorf("%d sums", len(total.Sums)))
	}
	r.reduced++
	r.norm = total.Sums[0].Norm(r.Magnitude)
	if math.IsNaN(r.norm) || math.IsInf(r.norm, 0) {
		return 0, &solver.NotFiniteError{Sweep: p.First, Norm: r.norm}
	}
	return total.Flags, nil
}

// save saves the state if a save is due and no rank is busy with an earlier one.
func (r *run) save(ctx context.Context, flags solver.Flags) error {
	sweeps := r.engine.Sweeps()
	if r.Saver == nil || !r.saving.Due(sweeps, flags) {
		return nil
	}
	if err := r.Saver.Save(ctx, sweeps); err != nil {
		return fmt.Errorf("sweep %d: save the state: %w", sweeps-1, err)
	}
	return nil
}

// sample takes a sample if one is due.
func (r *run) sample(ctx context.Context, flags solver.Flags) error {
	at := solver.Sample{Sweeps: r.engine.Sweeps(), Norm: r.norm}
	if err := r.Samples.Take(ctx, at, r.Plan.Stride, flags&solver.FlagSample != 0, r.watch); err != nil {
		return fmt.Errorf("after %d sweeps: %w", at.Sweeps, err)
	}
	return nil
}
