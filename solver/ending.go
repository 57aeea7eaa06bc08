package solver

import (
	"fmt"
	"math"
)

// Decisive is the norm that ended a run. The last sweep is the one after it, unless max_iterations left no room for it.
type Decisive struct {
	Sweep int
	Norm  float64
}

// NotFiniteError says that the norm of a sweep was no finite number.
type NotFiniteError struct {
	Sweep int
	Norm  float64
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("sweep %d: the norm is %v: the field has left the range of its type or was damaged",
		e.Sweep, e.Norm)
}

// ending decides after which sweep a run ends. It knows settled norms and flags alone, so all ranks come to the same.
type ending struct {
	maxIterations int
	rule          StopRule
	forecast      forecast
	norm          float64   // the newest
	decisive      *Decisive // once a norm has ended the run
	stop          int       // sweeps after which the run ends; MaxInt while no norm has ended it
	reason        StopReason
	interrupted   bool // a rank was asked to stop
}

func newEnding(tolerance float64, maxIterations int) ending {
	return ending{maxIterations: maxIterations, rule: StopRule{Tolerance: tolerance}, stop: math.MaxInt}
}

// judge applies the stop rule to the norm of the next sweep.
func (e *ending) judge(sweep int, norm float64) {
	if e.stop == math.MaxInt {
		if reason := e.rule.Add(norm); reason != "" {
			e.stop, e.reason = min(sweep+2, e.maxIterations), reason
			e.decisive = &Decisive{Sweep: sweep, Norm: norm}
		}
	}
	e.forecast.add(sweep, norm)
	e.norm = norm
}

// judgePass applies the stop rule to the norms of a settled pass, and returns those of sweeps that the run does.
func (e *ending) judgePass(p Pass, sums []Sum, m Magnitude) ([]float64, error) {
	norms := make([]float64, 0, len(sums))
	for i, s := range sums {
		sweep := p.First + i
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
	return norms, nil
}

// after returns the number of sweeps that the run is to do as far as is known, if it has done the given number.
func (e *ending) after(sweeps int) int {
	switch {
	case e.stop < math.MaxInt:
		return e.stop
	case e.interrupted:
		return sweeps
	default:
		return e.maxIterations
	}
}

// mayLieWithin reports whether the norms of a pass, not known yet, might end the run before the pass's last sweep. The
// field before the pass is then needed to replay it.
func (e *ending) mayLieWithin(p Pass) bool {
	if e.stop < math.MaxInt {
		return false
	}
	decisive := p.First + p.Sweeps - 2 // a norm that ends the run here or before ends it within p
	if decisive < p.First {
		return false
	}
	return !e.forecast.excludes(decisive, e.rule.Tolerance) || e.rule.mayStall(decisive-e.forecast.sweep)
}

// why returns the reason for which a run ends after so many sweeps.
func (e *ending) why(sweeps int) StopReason {
	switch {
	case e.reason != "":
		return e.reason
	case e.interrupted && sweeps < e.maxIterations:
		return Interrupted
	default:
		return MaxIterations
	}
}
