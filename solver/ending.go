package solver

import (
	"context"
	"fmt"
	"math"
)

// Decisive is the norm that ended a run. A run by sweeps does one sweep more after it, unless max_iterations leaves no
// room.
type Decisive struct {
	Sweep int
	Norm  float64
}

// NotFiniteError reports that the norm of an iteration is not a finite number.
type NotFiniteError struct {
	Unit  string // of the iteration, as in Traits
	Sweep int
	Norm  float64
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("%s %d: the norm is %v: the field has left the range of its type or was damaged",
		e.Unit, e.Sweep, e.Norm)
}

// ending decides after which iteration a run ends. It sees settled norms and flags only, so all ranks decide alike.
type ending struct {
	traits        Traits
	maxIterations int
	rule          StopRule
	forecast      forecast
	judged        int       // all norms of iterations below this one are known
	norm          float64   // the newest one; NaN if there is none
	decisive      *Decisive // the norm that ended the run; nil while there is none
	stop          int       // iterations after which that norm ends the run; MaxInt while there is none
	reason        StopReason
	interrupted   bool      // a rank was asked to stop
	norms         []float64 // of the newest pass
}

func newEnding(t Traits, g Goal, maxIterations int) ending {
	return ending{traits: t, maxIterations: maxIterations, rule: StopRule{Goal: g, Stall: t.Stall},
		stop: math.MaxInt, norm: math.NaN(), forecast: forecast{gap: t.Norms.stride()}}
}

// resume takes the norms of the iterations before the run. The run that had them went on after each stall for which it
// has an AtStall.
func (e *ending) resume(s Start) {
	all := e.traits.Norms.In(s.Iterations)
	for i, norm := range s.Norms {
		reason := e.rule.Add(norm)
		if reason == Stalled && e.traits.AtStall != nil {
			reason = ""
		}
		e.judge(e.traits.Norms.Sweep(all-len(s.Norms)+i), norm, reason)
	}
	e.judged = s.Iterations
}

// judge takes the norm of the next iteration that has one, and why it ends the run, or "".
func (e *ending) judge(iteration int, norm float64, reason StopReason) {
	if reason != "" && e.stop == math.MaxInt {
		e.stop, e.reason = min(iteration+e.traits.Delay, e.maxIterations), reason
		e.decisive = &Decisive{Sweep: iteration, Norm: norm}
	}
	e.forecast.add(iteration, norm)
	e.norm, e.judged = norm, iteration+1
}

// judgePass applies the stop rule to the norms of a settled pass. It returns the norms of the iterations up to the end
// of the run, which are valid until the next call.
func (e *ending) judgePass(ctx context.Context, p Pass, sums []Sum, m Magnitude) ([]float64, error) {
	norms := e.norms[:0]
	first, _ := e.traits.Norms.Of(p)
	for i, s := range sums {
		iteration := first + i*e.traits.Norms.stride()
		if iteration >= e.stop {
			break
		}
		norm := s.Norm(m)
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return nil, &NotFiniteError{Unit: e.traits.Unit, Sweep: iteration, Norm: norm}
		}
		reason := e.rule.Add(norm)
		if reason == Stalled && e.traits.AtStall != nil {
			var err error
			if reason, err = e.traits.AtStall(ctx, norm, e.rule.Goal); err != nil {
				return nil, fmt.Errorf("%s %d: %w", e.traits.Unit, iteration, err)
			}
		}
		e.judge(iteration, norm, reason)
		norms = append(norms, norm)
	}
	e.judged, e.norms = max(e.judged, p.First+p.Sweeps), norms
	return norms, nil
}

// end returns the number of iterations that the run is to do, as far as is known after the given number of them.
func (e *ending) end(done int) int {
	switch {
	case e.stop < math.MaxInt:
		return e.stop
	case e.interrupted:
		return done
	default:
		return e.maxIterations
	}
}

// mayEndBefore reports whether a norm that is not yet known might end the run after fewer than the given number of
// iterations.
func (e *ending) mayEndBefore(iterations int) bool {
	// The last iteration whose norm would do so is iterations-Delay-1, or the last one before that has a norm.
	c := e.traits.Norms
	known, could := c.In(e.judged), c.In(iterations-e.traits.Delay)
	if e.stop < math.MaxInt || could <= known {
		return false
	}
	return !e.forecast.excludes(c.Sweep(could-1), e.rule.Target()) || e.traits.Stall.Within(could-known)
}

// reasonAfter returns why a run ends after the given number of iterations.
func (e *ending) reasonAfter(done int) StopReason {
	switch {
	case e.reason != "":
		return e.reason
	case e.interrupted && done < e.maxIterations:
		return Interrupted
	default:
		return MaxIterations
	}
}

// StopReason says why a run ended.
type StopReason string

// The reasons.
const (
	Converged     StopReason = "converged"      // a norm met the goal, or no point changes at all
	Stalled       StopReason = "stalled"        // only rounding is left: the field stays the same or alternates
	Stagnated     StopReason = "stagnated"      // norms no longer fall, and are above what rounding leaves
	MaxIterations StopReason = "max_iterations" // the configured number of sweeps was done
	Interrupted   StopReason = "interrupted"    // a rank was asked to stop
)

// StopRule decides from the norms of a run alone when the run ends: with a norm that meets the goal, that is exactly 0,
// or with which the run has stalled. Updates after a norm of 0 are too small for any norm to show.
type StopRule struct {
	Goal
	Stall Stall
	seen  bool // a norm was added
}

// Stall tells by norms whether a run has stalled.
type Stall interface {
	// Add takes the next norm and reports whether the run has stalled with it.
	Add(norm float64) bool
	// Within reports whether the run may stall within the next n norms.
	Within(n int) bool
}

// Add takes the next norm. It returns the reason why this norm ends the run, or "" if it does not.
func (r *StopRule) Add(norm float64) StopReason {
	first := !r.seen
	if r.seen = true; r.Base == 0 {
		r.Base = norm
	}
	stalled := r.Stall.Add(norm)
	switch {
	case r.Met(norm), norm == 0 && first:
		return Converged
	case norm == 0 || stalled:
		return Stalled
	}
	return ""
}

// Goal says which norms are so small that a run has converged.
type Goal struct {
	Tolerance float64 // a norm of at most Tolerance,
	Relative  float64 // or of at most Relative times Base
	// Base is the norm of the first update of the field that is 0 at all points that sweeps update, and has the values
	// of walls and fixed points at the others. Where it is 0, the first norm of the run takes its place.
	Base float64
	// Blind is what a norm may have lost by the unit of its sum; see Blind.
	Blind float64
	// Unnamed says that the user named no tolerance. The floor of rounding then meets the goal, too.
	Unnamed bool
}

// Target returns the largest norm that may meet the goal; 0 if none does.
func (g Goal) Target() float64 { return max(g.Tolerance, g.Relative*g.Base) }

// slack is the part by which a norm that meets the goal may exceed the target, once what it may have lost is added.
const slack = 1e-6

// Met reports whether a norm meets the goal.
func (g Goal) Met(norm float64) bool {
	target := g.Target()
	return norm <= target && target > 0 && norm+g.Blind <= target*(1+slack)
}

// MetBy returns the index of the first norm that meets the goal. norms are those of a run from its beginning.
func (g Goal) MetBy(norms []float64) (index int, ok bool) {
	for i, norm := range norms {
		if g.Base == 0 {
			g.Base = norm
		}
		if g.Met(norm) {
			return i, true
		}
	}
	return 0, false
}

// Blind bounds what a norm over the mesh may lose: the sum of each group is cut to a multiple of the unit of e.
func Blind(m Mesh, e Magnitude) float64 {
	ceil := func(n, by int) float64 { return float64((n + by - 1) / by) }
	groups := ceil(m.NX, GroupCols) * (ceil(m.NY, GroupRows) + 1)
	return math.Ldexp(math.Sqrt(groups), int(e)-UnitBits/2)
}

const (
	forecastMargin = 16 // factor by which a forecast norm must exceed the tolerance to rule out a stop
	forecastReach  = 16 // a forecast norm below the newest one by this factor rules out nothing
)

// forecast gives lower bounds for norms that are not known yet. The update r of a sweep obeys r(k+1) = J r(k) with the
// symmetric matrix J of the Jacobi iteration, so |r(k)|^2 = sum c(i)^2 lambda(i)^(2k). That is a sequence of moments,
// whose logarithm is convex in k. Two norms, g sweeps apart, therefore bound all later ones:
//
//	|r(k+mg)| >= |r(k)| (|r(k)| / |r(k-g)|)^m
//
// The bound fails once little more than rounding is left of r: norms then fall in jumps, to 0 in the end. Three norms
// whose logarithm is not convex reveal that state, and the forecast then excludes nothing for doubtSweeps sweeps. The
// state begins while norms are over a hundred times as large as the last one in all runs examined, so forecastReach
// keeps the forecast from looking across it. The forecast only decides whether a rank may sweep on before a norm is
// known. A stop that it missed costs time (see jacobi.Engine.restart) but does not change the result.
type forecast struct {
	gap        int // sweeps from one norm to the next
	sweep      int // the sweep of last
	last, prev float64
	have       int // norms added
	doubt      int // there is no forecast before the norm of this sweep
}

const (
	bend        = 1e-3 // relative fall of the ratio of consecutive norms that only rounding can cause
	doubtSweeps = 1000 // sweeps without a forecast after such a fall
)

// add takes the norm of the next sweep that has one.
func (f *forecast) add(sweep int, norm float64) {
	if f.have >= 2 && norm*f.prev < (1-bend)*f.last*f.last {
		f.doubt = sweep + doubtSweeps
	}
	f.prev, f.last, f.sweep = f.last, norm, sweep
	f.have++
}

// excludes reports whether the norms of all sweeps up to and including sweep, which has one, lie above tolerance.
func (f *forecast) excludes(sweep int, tolerance float64) bool {
	if f.have < 2 || f.last <= 0 || f.prev <= 0 || f.sweep < f.doubt {
		return false
	}
	fall := power(min(1, f.last/f.prev), (sweep-f.sweep)/f.gap)
	return fall > 1./forecastReach && f.last*fall > forecastMargin*tolerance
}

// power returns x^n for n >= 0 by squaring. It takes products alone, which every processor rounds in the same way, so
// all ranks get the same value.
func power(x float64, n int) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p *= x
		}
		x *= x
	}
	return p
}
