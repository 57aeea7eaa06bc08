package solver

import "jacobi/internal/elementary"

// forecastMargin is how far above the tolerance a forecast norm must lie to rule a stop out.
const forecastMargin = 16

// forecast bounds norms that have not arrived yet. The update r of a sweep obeys r(k+1) = J r(k) with the symmetric
// matrix J of the Jacobi iteration, so |r(k)|^2 = sum c(i)^2 lambda(i)^(2k): a sequence of moments, whose
// logarithm is convex in k. Two consecutive norms thus bound all later ones from below:
//
//	|r(k+m)| >= |r(k)| (|r(k)| / |r(k-1)|)^m
//
// Rounding breaks the bound when little more than rounding is left of r: norms then fall in leaps, to 0 in the end.
// Three norms whose logarithm is not convex tell of that, and the forecast excludes nothing for a while. It only
// decides whether the run may go on before a norm is known; a stop that it missed costs time (see run.rewind), never
// the answer.
type forecast struct {
	sweep      int // of last
	last, prev float64
	have       int
	doubt      int // sweeps below this one are not forecast
}

const (
	bend        = 1e-3 // relative fall of the ratio of two norms that only rounding can make
	doubtSweeps = 1000 // for which one such fall counts
)

// add takes the norm of the next sweep.
func (f *forecast) add(sweep int, norm float64) {
	if f.have >= 2 && norm*f.prev < (1-bend)*f.last*f.last {
		f.doubt = sweep + doubtSweeps
	}
	f.prev, f.last, f.sweep = f.last, norm, sweep
	f.have++
}

// excludes reports whether the norms of all sweeps up to and including sweep lie above tolerance.
func (f *forecast) excludes(sweep int, tolerance float64) bool {
	if f.have < 2 || f.last <= 0 || f.prev <= 0 || sweep < f.doubt {
		return false
	}
	ratio := min(1, f.last/f.prev)
	return f.last*elementary.Pow(ratio, float64(sweep-f.sweep)) > forecastMargin*tolerance
}
