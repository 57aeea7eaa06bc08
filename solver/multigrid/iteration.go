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
	// Aggregates is the number of cycles after which aggregates took over; 0 where the grid has none.
	Aggregates int
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
	if it.Layout.Plan.Weighted && it.Aggregates == 0 && it.plateau.slow() {
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
	it.vcycle, it.Aggregates = newVcycle(g, it.watch), it.cycles
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

// patience is the number of cycles in a row without a new least norm after which a run may have stalled.
const patience = 4

// noise is the factor above the least norm to which rounding may lift others.
const noise = 2

// mostPatience is the largest patience with plain cycles whose norms are above the floor of rounding.
const mostPatience = 16

// conjugatePatience is the least number of norms above the least one that end cycles with conjugate gradients. These
// make the energy of the error smaller in each step, while norms go up and down: up to 40 of them passed without a new
// least one in runs of 350 to 450 cycles that converged, and once as many as before it.
const conjugatePatience = 64

// leeway is the factor by which norms may still fall below the floor of rounding. A run that slackens there goes on if
// it may meet a tolerance that the user has named.
const leeway = floorFactor

// reach returns about the largest quotient of the floor of rounding and the first norm on a mesh with n points along
// its longer side, for constant coefficients. Where only one side has given values, the error of a field of 0 may be
// about 1.6 n^2 times the norm of its first update.
func reach(n int) float64 { return floorFactor * 0x1p-52 * float64(n) * float64(n) }

// plateau is the solver.Stall of cycles: patience norms in a row are not below the least one before them. Norms above
// noise times the least one, and all norms until they have fallen to a tenth of the first one, count a tenth: beside
// fixed points norms may grow at first. The patience doubles with each stall.
//
// A run may also have stalled when its norm slackens: the rate, which is the quotient of the norm and the one before
// it, is above cgRate and above twice the last rate, and the norm may be at the floor of rounding. A comparison reads
// the whole field, so the next one is made at a sixteenth of its norm.
type plateau struct {
	pace
	reach        float64 // of the floor of rounding and the first norm
	rate         float64 // of the last norm
	slackened    bool    // the last norm slackened
	lastSlack    float64 // the last norm that slackened; 0 if none did
	patience     int
	first, least float64
	sinceLeast   int // tenths of norms since the least one, or since the last stall
	beforeLeast  int // norms before the least one
}

const tenths = 10

// Add implements solver.Stall.
func (p *plateau) Add(norm float64) bool {
	rate := norm / p.last
	p.slackened = p.norms > 1 && rate > max(cgRate, 2*p.rate) && norm <= float64(p.reach*p.first) &&
		(p.lastSlack == 0 || norm <= p.lastSlack/16)
	if p.slackened {
		p.lastSlack = norm
	}
	p.rate = rate
	p.add(norm)
	switch {
	case p.norms == 1:
		p.first, p.least = norm, norm
		return false
	case norm < p.least:
		p.least, p.sinceLeast, p.beforeLeast = norm, 0, p.norms-1
		return p.slackened
	case norm > noise*p.least || p.least > p.first/tenths:
		p.sinceLeast++
	default:
		p.sinceLeast += tenths
	}
	if p.sinceLeast < tenths*p.patience {
		return p.slackened
	}
	p.patience, p.sinceLeast, p.slackened = 2*p.patience, 0, false
	return true
}

// Within implements solver.Stall.
func (*plateau) Within(int) bool { return true }

// patient reports whether a run that has stalled above the floor of rounding may go on.
func (p *plateau) patient(conjugate bool) bool {
	if conjugate && p.least > 0 {
		return p.norms-1-p.beforeLeast < max(conjugatePatience, p.beforeLeast)
	}
	return p.patience <= mostPatience
}

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
