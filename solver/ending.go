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
			if reason, err = e.traits.AtStall(ctx, norm, e.rule.Base); err != nil {
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
