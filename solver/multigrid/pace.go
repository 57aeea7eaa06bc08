package multigrid

// What a run tells by its norms: whether its cycles are too slow, and whether it has stalled.

// trial is the number of cycles after which a run may go over to aggregates, and switchRate the factor by which each
// cycle must have divided the norm for it to stay (docs/notebook/aggregation.md).
const (
	trial      = 5
	switchRate = 2.5
)

// cgRate is the largest quotient of two norms with which plain cycles together take less time than cycles with
// conjugate gradients, each of which takes up to two thirds longer (docs/notebook/figures.md).
const cgRate = 1. / 16

// pace tells by the norms of a run whether its cycles are too slow.
type pace struct {
	norms         int // added
	largest, last float64
	factor        float64 // switchRate to the power of the cycles done
	aboveCGRate   bool    // a cycle after the first one was; that one may find any error
}

// add takes the norm of the field after the next cycle; the first is the one before all cycles. Norms may grow at
// first, so the largest one counts.
func (p *pace) add(norm float64) {
	if p.norms++; p.norms == 1 {
		p.factor = 1
	} else {
		p.factor *= switchRate
	}
	p.aboveCGRate = p.aboveCGRate || p.norms > 2 && norm > float64(cgRate*p.last)
	p.largest, p.last = max(p.largest, norm), norm
}

// slow reports whether a run that has done at least trial cycles has done more than a faster one would need.
func (p *pace) slow() bool { return p.norms > trial && float64(p.last*p.factor) > p.largest }

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
