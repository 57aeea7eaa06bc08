package multigrid

// patience is the number of cycles in a row without a new least norm after which a run may have stalled.
const patience = 4

// noise is how far above the least norm rounding may lift others.
const noise = 2

// most is the largest patience with a run whose norms are above the floor of rounding.
const most = 16

// plateau is the solver.Stall of cycles: patience norms in a row are not below the least one before them. Norms above
// noise times the least one, and all norms until they have fallen to a tenth of the first one, count a tenth: beside
// fixed points norms may grow at first. The patience doubles with each stall.
type plateau struct {
	patience     int
	first, least float64
	since        int // tenths of norms since the least one
	seen         bool
}

const tenths = 10

// Add implements solver.Stall.
func (p *plateau) Add(norm float64) bool {
	switch {
	case !p.seen:
		p.first, p.least, p.seen = norm, norm, true
		return false
	case norm < p.least:
		p.least, p.since = norm, 0
		return false
	case norm > noise*p.least || p.least > p.first/tenths:
		p.since++
	default:
		p.since += tenths
	}
	if p.since < tenths*p.patience {
		return false
	}
	p.patience, p.since = 2*p.patience, 0
	return true
}

// Within implements solver.Stall.
func (*plateau) Within(int) bool { return true }

// patient reports whether a run that has stalled above the floor of rounding may go on.
func (p *plateau) patient() bool { return p.patience <= most }
