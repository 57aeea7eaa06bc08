package multigrid

import (
	"context"
	"fmt"
	"math"
	"time"

	"jacobi/solver"
)

// Options are the parameters of an Iteration, the same on all ranks.
type Options struct {
	Cycles int // that the loaded field has been through
	// AggregatesAfter is the number of cycles after which aggregates took over; 0 where the grid has none.
	AggregatesAfter int
	// CG is for conjugate gradients, which begin where Plan.Hard says or plain cycles are slow; nil for plain cycles.
	CG CG
	// Drain, if not nil, waits until this rank needs no memory of others. It is called when all else is done.
	Drain func(ctx context.Context) error
}

// Iteration is a solver.Iteration whose iterations are cycles. The norm of a field is the L2 norm of the update of one
// Jacobi sweep; the first sweep of the next cycle yields it. So a pass runs from the middle of a cycle to the middle of
// the next. When a run ends, the first half of another cycle is done. It does not count and has not changed the field.
// Leave completes that cycle as far as level 1, for Correction.
//
// Where the first cycles of a weighted operator divide the norm too little, the others have aggregates in place of the
// coarser levels (see Grid.Aggregate). That follows from norms, so all ranks change in the same cycle.
type Iteration struct {
	Options
	vcycle
	sums    *solver.Reductions
	cycles  int       // done
	began   time.Time // when the present cycle did
	plateau plateau
}

// New returns the Iteration of a field that the device of the finest mesh has loaded. Besides its norms, the Iteration
// adds numbers of its own over the ranks.
func New(finest Grid, sums *solver.Reductions, o Options) *Iteration {
	m := finest.Layout.Plan.Levels[0].Mesh
	return &Iteration{Options: o, vcycle: newVcycle(finest, sums.Watch), sums: sums, cycles: o.Cycles,
		plateau: plateau{patience: patience, reach: reach(max(m.NX, m.NY))}}
}

// Traits implements solver.Iteration.
func (it *Iteration) Traits() solver.Traits {
	return solver.Traits{Unit: "cycle", Stall: &it.plateau, AtStall: it.atStall}
}

// Done implements solver.Iteration.
func (it *Iteration) Done() int { return it.cycles }

// Begin implements solver.Iteration. It does the first half of the first cycle.
func (it *Iteration) Begin(ctx context.Context) (solver.Pass, error) {
	return it.begin(ctx, it.down)
}

// Advance implements solver.Iteration. It does one cycle, from the middle of one to the middle of the next.
func (it *Iteration) Advance(ctx context.Context, _, _ int) (solver.Pass, error) {
	if it.Layout.Plan.Weighted && it.AggregatesAfter == 0 && it.plateau.slow() {
		if err := it.speedUp(ctx); err != nil {
			return solver.Pass{}, it.fault(err)
		}
	}
	accelerated := it.Accelerated()
	if err := it.completeCycle(ctx, accelerated); err != nil {
		return solver.Pass{}, it.fault(err)
	}
	it.end()
	it.cycles++
	if accelerated { // CG.Step has filled the halos
		return it.begin(ctx, it.downFromHalos)
	}
	return it.begin(ctx, it.down)
}

// speedUp goes over to aggregates, unless rounding alone keeps the norms from falling.
func (it *Iteration) speedUp(ctx context.Context) error {
	floor, err := it.floor(ctx, 0)
	if err != nil || it.plateau.last <= floor {
		return err
	}
	return it.aggregate(ctx)
}

// aggregate goes over to aggregates and does the first half of the present cycle with them.
func (it *Iteration) aggregate(ctx context.Context) error {
	var g Grid
	err := it.watch.Do(solver.Step{Kind: solver.StepAggregate}, func() (err error) {
		g, err = it.Aggregate(ctx)
		return err
	})
	if err != nil {
		return err
	}
	it.vcycle, it.AggregatesAfter = newVcycle(g, it.watch), it.cycles
	return it.downFromHalos(ctx)
}

// begin does the first half of a cycle, which down does, and returns the pass that has its norm.
func (it *Iteration) begin(ctx context.Context, down func(context.Context) error) (solver.Pass, error) {
	it.began = time.Now()
	if err := down(ctx); err != nil {
		return solver.Pass{}, it.fault(err)
	}
	return solver.Pass{Index: uint64(it.cycles), First: it.cycles, Sweeps: 1}, nil
}

// end ends the step of the present cycle.
func (it *Iteration) end() {
	it.watch.End(solver.Step{Kind: solver.StepCycle, Number: uint64(it.cycles)}, it.began)
}

// fault says in which cycle an error occurred.
func (it *Iteration) fault(err error) error { return fmt.Errorf("cycle %d: %w", it.cycles, err) }

// Accelerated reports whether conjugate gradients have begun. That follows from the plan and from norms, so it holds
// for all ranks, and after a restart, alike.
func (it *Iteration) Accelerated() bool {
	return it.CG != nil && (it.Layout.Plan.Hard || it.plateau.aboveCGRate)
}

// completeCycle does the second half of a cycle and, if it is accelerated, a step of conjugate gradients.
func (it *Iteration) completeCycle(ctx context.Context, accelerated bool) error {
	if !accelerated {
		return it.up(ctx, 0)
	}
	if err := it.timedCG(func() error { return it.CG.Keep(ctx) }); err != nil {
		return err
	}
	if err := it.up(ctx, 0); err != nil {
		return err
	}
	return it.conjugate(ctx)
}

// Sums implements solver.Iteration.
func (it *Iteration) Sums(ctx context.Context, _ solver.Pass) ([]solver.Sum, error) {
	defer it.watch.End(solver.Step{Kind: solver.StepNorm}, time.Now())
	sum, err := it.Device.Sum(ctx)
	return []solver.Sum{sum}, err
}

// atStall lets a run whose norms no longer fall go on for a while if they are above what rounding leaves, or may be: a
// norm of 0 is at most what it may have lost.
func (it *Iteration) atStall(ctx context.Context, norm float64, g solver.Goal) (solver.StopReason, error) {
	floor, err := it.floor(ctx, g.Base)
	if norm == 0 {
		norm = solver.Blind(it.Layout.Plan.Levels[0].Mesh, it.Layout.Magnitude)
	}
	switch {
	case err != nil:
		return "", err
	case norm <= floor && !(it.plateau.slackened && !g.Unnamed && g.Target() > norm/leeway):
		return solver.Stalled, nil
	case it.plateau.slackened:
		return "", nil
	case it.plateau.patient(it.Accelerated()):
		return "", nil
	}
	return solver.Stagnated, nil
}

// Finish implements solver.Iteration. The field is the one before the present cycle, whose norm ended the run.
func (it *Iteration) Finish(context.Context, int) error {
	it.end()
	return nil
}

// Leave implements solver.Iteration.
func (it *Iteration) Leave(ctx context.Context) error {
	if err := it.up(ctx, 1); err != nil { // completes the correction of level 1
		return err
	}
	if it.Drain == nil {
		return nil
	}
	return it.Drain(ctx)
}

// leeway is the factor by which norms may still fall below the floor of rounding. A run that slackens there goes on if
// it may meet a tolerance that the user has named.
const leeway = floorFactor

// A norm of at most floorFactor times 2^-53 times the L2 norm of the field is what rounding leaves. The update of a
// point is the difference of values about as large as that point, each with an error of half a unit in the last place.
const floorFactor = 16

// headroom is the growth of the field beyond the magnitude of the run that floor can measure, in powers of two.
const headroom = 33

// floor returns the largest norm that rounding may leave of the present field, the same on all ranks; base
// is that of the goal.
func (it *Iteration) floor(ctx context.Context, base float64) (float64, error) {
	e := it.Layout.Magnitude + headroom
	sum, err := it.Device.Squares(ctx, e)
	if err != nil {
		return 0, fmt.Errorf("floor of rounding: %w", err)
	}
	total, err := it.sums.Total(ctx, solver.Contribution{Sums: []solver.Sum{sum}})
	if err != nil {
		return 0, fmt.Errorf("floor of rounding: %w", err)
	}
	largest := math.Hypot(total.Sums[0].Norm(e), base) // base has what walls and source add to an update
	return floorFactor * 0x1p-53 * largest, nil
}
