package solver

import (
	"fmt"
	"math"
)

// Decisive is the norm that ended a run. The run does one sweep more after it, unless max_iterations leaves no room.
type Decisive struct {
	Sweep int
	Norm  float64
}

// NotFiniteError reports that the norm of a sweep is not a finite number.
type NotFiniteError struct {
	Sweep int
	Norm  float64
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("sweep %d: the norm is %v: the field has left the range of its type or was damaged",
		e.Sweep, e.Norm)
}

// ending decides after which sweep a run ends. It sees settled norms and flags only, so all ranks decide alike.
type ending struct {
	maxIterations int
	rule          StopRule
	forecast      forecast
	cadence       Cadence
	judged        int       // all norms of sweeps below this one are known
	norm          float64   // the newest one; NaN if there is none
	decisive      *Decisive // the norm that ended the run; nil while there is none
	stop          int       // sweeps after which that norm ends the run; MaxInt while there is none
	reason        StopReason
	interrupted   bool // a rank was asked to stop
}

func newEnding(tolerance float64, maxIterations int, c Cadence) ending {
	return ending{maxIterations: maxIterations, rule: StopRule{Tolerance: tolerance}, stop: math.MaxInt, cadence: c,
		norm: math.NaN(), forecast: forecast{gap: c.stride()}}
}

// judge applies the stop rule to the norm of the next sweep that has one.
func (e *ending) judge(sweep int, norm float64) {
	if e.stop == math.MaxInt {
		if reason := e.rule.Add(norm); reason != "" {
			e.stop, e.reason = min(sweep+2, e.maxIterations), reason
			e.decisive = &Decisive{Sweep: sweep, Norm: norm}
		}
	}
	e.forecast.add(sweep, norm)
	e.norm, e.judged = norm, sweep+1
}

// judgePass applies the stop rule to the norms of a settled pass. It returns the norms of the sweeps up to the end of
// the run.
func (e *ending) judgePass(p Pass, sums []Sum, m Magnitude) ([]float64, error) {
	norms := make([]float64, 0, len(sums))
	first, _ := e.cadence.Of(p)
	for i, s := range sums {
		sweep := first + i*e.cadence.stride()
		if sweep >= e.stop {
			break
		}
		norm := s.Norm(m)
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return nil, &NotFiniteError{Sweep: sweep, Norm: norm}
		}
		e.judge(sweep, norm)
		norms = append(norms, norm)
	}
	e.judged = max(e.judged, p.First+p.Sweeps)
	return norms, nil
}

// end returns the number of sweeps that the run is to do, as far as is known after the given number of sweeps.
func (e *ending) end(sweeps int) int {
	switch {
	case e.stop < math.MaxInt:
		return e.stop
	case e.interrupted:
		return sweeps
	default:
		return e.maxIterations
	}
}

// mayEndBefore reports whether a norm that is not yet known might end the run after fewer than the given number of
// sweeps.
func (e *ending) mayEndBefore(sweeps int) bool {
	// The last sweep whose norm would do so is sweeps-3, or the last one before that has a norm.
	known, could := e.cadence.In(e.judged), e.cadence.In(sweeps-2)
	if e.stop < math.MaxInt || could <= known {
		return false
	}
	return !e.forecast.excludes(e.cadence.Sweep(could-1), e.rule.Tolerance) || e.rule.mayStall(could-known)
}

// reasonAfter returns why a run ends after the given number of sweeps.
func (e *ending) reasonAfter(sweeps int) StopReason {
	switch {
	case e.reason != "":
		return e.reason
	case e.interrupted && sweeps < e.maxIterations:
		return Interrupted
	default:
		return MaxIterations
	}
}
