package solver

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
