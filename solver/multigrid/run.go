package multigrid

import (
	"context"
	"fmt"
	"math"
	"time"

	"jacobi/solver"
)

// Exchange copies rows between the devices of ranks. All ranks make the same calls.
type Exchange interface {
	// Overlap fills the Overlap rows on both sides of this rank's stripe, where there is a neighbour.
	Overlap(ctx context.Context, level int, a Array) error
	// Gather gives every rank the whole right-hand side of level Layout.Tail.
	Gather(ctx context.Context) error
}

// StagedExchange is an Exchange of a run that may begin with full multigrid.
type StagedExchange interface {
	Exchange
	// Stage returns the exchange of a stage whose levels the ranks share, of which d holds those of this rank.
	Stage(d Device, l StageLayout) (StagedExchange, error)
	// GatherSource gives every rank the whole source of a stage that each holds as a whole, here in d. Each rank has
	// computed the rows that belong to its own of the finer mesh (Layout.Below), which is the mesh of this exchange.
	GatherSource(ctx context.Context, d Device, l StageLayout) error
}

// Options are the parameters of Run. All ranks must be given the same, except for Stop, Saver, the Samplers and the
// callbacks.
type Options struct {
	// Start describes the loaded field: Sweeps counts cycles, and Norms are those of the cycles done.
	Start     solver.Start
	Magnitude solver.Magnitude
	Tail      int     // as in the device's Layout
	Search    Search  // for conjugate gradients; nil for plain cycles
	Tolerance float64 // the run ends when the norm is at most Tolerance,
	Relative  float64 // or at most Relative times the first norm
	MaxCycles int
	// Stages, if any, make the run begin with full multigrid unless cycles have been done before; the finest one first.
	Stages []Stage
	// Stop, if not nil, reports whether this rank was asked to stop; it is called once a cycle.
	Stop func() bool
	// Saver, if not nil, saves the state every SaveEvery cycles (0: only on request).
	Saver     solver.Saver
	SaveEvery int
	Samples   solver.Samples // by cycles; full multigrid comes before the first one
	// OnNorm, if not nil, is called with the norm of the field after each number of cycles.
	OnNorm func(cycles int, norm float64) error
	OnStep solver.OnStep // may be nil
}

// Run does cycles with the field that the device has loaded until the run ends. The norm of a field is the L2 norm of
// the update of one Jacobi sweep; the first sweep of the next cycle yields it. So a run does a part of one cycle more
// than it counts, and its field is the one before that. x is nil for a rank that is alone. All ranks of a run make the
// same calls of x and red. In the result, Sweeps counts cycles, and Norm is that of the field.
func Run(ctx context.Context, d Device, x Exchange, red solver.Reducer, o Options) (solver.Result, error) {
	r := &run{Options: o, reducer: red, cycles: o.Start.Sweeps,
		saving: solver.NewCycleSaving(o.Start.Sweeps, o.SaveEvery)}
	r.watch.OnStep = o.OnStep
	r.vcycle = vcycle{device: d, exchange: x, tail: o.Tail, watch: &r.watch}
	r.rule = StopRule(o.Tolerance, o.Relative)
	r.rule.First = o.Start.First
	for _, norm := range o.Start.Norms {
		r.rule.Add(norm)
	}
	start := time.Now()
	reason, err := r.loop(ctx)
	r.watch.Total = time.Since(start)
	if err != nil {
		return solver.Result{Sweeps: r.cycles}, err
	}
	result := solver.Result{Sweeps: r.cycles, Norm: r.norm, Reason: reason, Times: r.watch.Times}
	if reason == solver.Converged || reason == solver.Stalled {
		result.Decisive = &solver.Decisive{Sweep: r.cycles, Norm: r.norm}
	}
	return result, nil
}

// patience is the number of cycles in a row without a new least norm after which a run has stalled.
const patience = 4

// noise is how far above the least norm rounding may lift others.
const noise = 2

// StopRule returns the rule by which a run with these keys ends.
func StopRule(tolerance, relative float64) solver.CycleRule {
	return solver.CycleRule{Tolerance: tolerance, Relative: relative, Patience: patience, Fall: 1, Noise: noise}
}

// run is the state of a Run.
type run struct {
	Options
	vcycle
	reducer solver.Reducer
	cycles  int // done
	norm    float64
	passes  uint64 // reductions done
	rule    solver.CycleRule
	saving  solver.CycleSaving
	watch   solver.Watch
}

// loop does cycles until the run ends, and returns why it ended.
func (r *run) loop(ctx context.Context) (solver.StopReason, error) {
	if r.cycles == 0 && len(r.Stages) > 0 {
		if err := r.climb(ctx); err != nil {
			return "", err
		}
	}
	for {
		if reason, err := r.cycle(ctx); err != nil || reason != "" {
			return reason, err
		}
		r.cycles++
	}
}

// cycle does a cycle, or as much of it as yields the norm of a field with which the run ends. It then returns why.
func (r *run) cycle(ctx context.Context) (solver.StopReason, error) {
	defer r.watch.End(solver.Step{Kind: solver.StepCycle, Number: uint64(r.cycles)}, time.Now())
	flags, err := r.down(ctx)
	if err != nil {
		return "", fmt.Errorf("cycle %d: %w", r.cycles, err)
	}
	if r.OnNorm != nil {
		if err := r.OnNorm(r.cycles, r.norm); err != nil {
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
	if err := r.change(ctx); err != nil {
		return "", fmt.Errorf("cycle %d: %w", r.cycles, err)
	}
	return "", nil
}

// ends returns why the run ends with the present field, or "".
func (r *run) ends(flags solver.Flags) solver.StopReason {
	reason := r.rule.Add(r.norm)
	switch {
	case reason != "":
		return reason
	case r.cycles >= r.MaxCycles:
		return solver.MaxIterations
	case flags&solver.FlagStop != 0:
		return solver.Interrupted
	}
	return ""
}

// down does the first half of a cycle, up to the solution on the tail, and sets norm to that of the field before it. It
// returns the flags of all ranks.
func (r *run) down(ctx context.Context) (solver.Flags, error) {
	down := r.vcycle.down
	if r.Search != nil && r.cycles > r.Start.Sweeps { // Search.Step has filled the overlaps
		down = r.descend
	}
	if err := down(ctx); err != nil {
		return 0, err
	}
	return r.reduce(ctx)
}

// reduce sets norm to that of the field before the cycle.
func (r *run) reduce(ctx context.Context) (flags solver.Flags, err error) {
	var sum solver.Sum
	step := solver.Step{Kind: solver.StepNorm}
	if err := r.watch.Do(step, func() error { sum, err = r.device.Sum(ctx); return err }); err != nil {
		return 0, fmt.Errorf("norm: %w", err)
	}
	flags = solver.FlagsOf(r.Stop, r.Saver, r.Samples)
	total, err := r.total(ctx, solver.Contribution{Sums: []solver.Sum{sum}, Flags: flags})
	if err != nil {
		return 0, fmt.Errorf("norm: %w", err)
	}
	r.norm = total.Sums[0].Norm(r.Magnitude)
	if math.IsNaN(r.norm) || math.IsInf(r.norm, 0) {
		return 0, fmt.Errorf("the norm is %v: the field has left the range of its type or was damaged", r.norm)
	}
	return total.Flags, nil
}

// total returns the sums and flags of all ranks together.
func (r *run) total(ctx context.Context, c solver.Contribution) (total solver.Contribution, err error) {
	err = r.watch.Do(solver.Step{Kind: solver.StepReduce, Number: r.passes}, func() error {
		if err := r.reducer.Post(ctx, r.passes, c); err != nil {
			return err
		}
		total, err = r.reducer.Wait(ctx, r.passes)
		return err
	})
	if err == nil && len(total.Sums) != len(c.Sums) {
		err = fmt.Errorf("%d sums, want %d", len(total.Sums), len(c.Sums))
	}
	r.passes++
	return total, err
}

// change does the second half of a cycle and, with a Search, a step of conjugate gradients.
func (r *run) change(ctx context.Context) error {
	if r.Search == nil {
		return r.up(ctx)
	}
	if err := r.searching(func() error { return r.Search.Keep(ctx) }); err != nil {
		return err
	}
	if err := r.up(ctx); err != nil {
		return err
	}
	return r.conjugate(ctx)
}

// save saves the state if a save is due and no rank is busy with an earlier one.
func (r *run) save(ctx context.Context, flags solver.Flags) error {
	if r.Saver == nil || r.cycles == r.Start.Sweeps {
		return nil
	}
	if !r.saving.Due(r.cycles, flags) {
		return nil
	}
	step := solver.Step{Kind: solver.StepSave, First: r.cycles}
	if err := r.watch.Do(step, func() error { return r.Saver.Save(ctx, r.cycles) }); err != nil {
		return fmt.Errorf("cycle %d: save the state: %w", r.cycles, err)
	}
	return nil
}

// sample takes a sample if one is due.
func (r *run) sample(ctx context.Context, flags solver.Flags) error {
	at := solver.Sample{Sweeps: r.cycles, Norm: r.norm}
	if err := r.Samples.Take(ctx, at, 1, flags&solver.FlagSample != 0, &r.watch); err != nil {
		return fmt.Errorf("after %d cycles: %w", r.cycles, err)
	}
	return nil
}
