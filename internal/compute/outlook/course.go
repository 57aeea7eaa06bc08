package outlook

import (
	"math"

	"jacobi/solver"
)

const (
	settled = 100 // sweeps over which the norm must have fallen before its rate is used
	growth  = 1.1 // the rate is taken over about the last tenth of the sweeps, or over settled if that is more
)

// Course forecasts the end of a run from the norms computed so far.
type Course struct {
	outlook       *Outlook
	tolerance     float64
	maxIterations int

	from, next point // the rate is taken between from and now; next replaces from later
	now        point
}

type point struct {
	sweep int
	norm  float64
}

// NewCourse returns a Course for a run with this outlook.
func NewCourse(outlook *Outlook, tolerance float64, maxIterations int) *Course {
	return &Course{outlook: outlook, tolerance: tolerance, maxIterations: maxIterations}
}

// Add adds the norm of a sweep.
func (c *Course) Add(sweep int, norm float64) {
	c.now = point{sweep, norm}
	if c.next == (point{}) {
		c.from, c.next = c.now, c.now
	}
	if float64(sweep) > growth*float64(c.next.sweep)+settled {
		c.from, c.next = c.next, c.now
	}
}

// End estimates how many sweeps the run will do in all, and why it will end. ok is false where that is unknown: before
// the norm has fallen for a while, and once little more than rounding is left of it.
func (c *Course) End() (sweeps int, reason solver.StopReason, ok bool) {
	max := float64(c.maxIterations)
	target, reason := c.outlook.target(c.tolerance)
	if c.now.norm <= target && reason == solver.Stalled {
		return 0, reason, false
	}
	end := max
	if target > 0 {
		left, known := c.left(target)
		if !known {
			return 0, "", false
		}
		end = float64(c.now.sweep) + left + 2
	}
	if end >= max {
		return c.maxIterations, solver.MaxIterations, true
	}
	return int(math.Ceil(end)), reason, true
}

// left estimates how many sweeps the norm needs to fall to target. The exact norm falls ever more slowly, so its latest
// rate gives a lower bound on the sweeps; the outlook predicts how the slowest modes fall. While many modes fall at
// once, the norm follows a power of the number of sweeps.
func (c *Course) left(target float64) (sweeps float64, ok bool) {
	if c.now.norm <= target {
		return 0, true
	}
	rate := math.Log(c.from.norm/c.now.norm) / float64(c.now.sweep-c.from.sweep)
	falls := c.now.sweep-c.from.sweep >= settled && rate > 0
	log := math.Log(c.now.norm / target)
	if to := c.outlook.sweepsTo(target); c.outlook.known && to >= c.outlook.early && to < endless {
		at := c.outlook.sweepsTo(c.now.norm)
		if at < c.outlook.early {
			at = float64(c.now.sweep)
		}
		sweeps = max(1, to-at)
		if falls {
			sweeps = max(sweeps, log/rate)
		}
		return sweeps, true
	}
	k, since := float64(c.now.sweep+1), float64(c.from.sweep+1)
	power := math.Log(c.from.norm/c.now.norm) / math.Log(k/since)
	return k * math.Expm1(log/power), falls
}
