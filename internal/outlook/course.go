package outlook

import (
	"math"

	"jacobi/solver"
)

const (
	settled = 100 // sweeps that norms have to fall before their ratio counts
	growth  = 1.1 // the ratio is taken over the last tenth of the sweeps, or settled
)

// Course forecasts the end of a run from the norms that it has.
type Course struct {
	outlook       *Outlook
	tolerance     float64
	maxIterations int

	from, next point // norms that the ratio is, and will be, taken from
	now        point
}

type point struct {
	sweep int
	norm  float64
}

// NewCourse forecasts a run.
func NewCourse(outlook *Outlook, tolerance float64, maxIterations int) *Course {
	return &Course{outlook: outlook, tolerance: tolerance, maxIterations: maxIterations}
}

// Add takes the norm of a sweep.
func (c *Course) Add(sweep int, norm float64) {
	c.now = point{sweep, norm}
	if c.next == (point{}) {
		c.from, c.next = c.now, c.now
	}
	if float64(sweep) > growth*float64(c.next.sweep)+settled {
		c.from, c.next = c.next, c.now
	}
}

// End returns about how many sweeps the run will do in all, and why it ends then. ok is false where that is not known:
// before norms have fallen for a while, and where little more than rounding is left of them.
func (c *Course) End() (sweeps int, reason solver.StopReason, ok bool) {
	most := float64(c.maxIterations)
	target, reason := c.outlook.target(c.tolerance)
	if c.now.norm <= target && reason == solver.Stalled {
		return 0, reason, false
	}
	end := most
	if target > 0 {
		left, known := c.left(target)
		if !known {
			return 0, "", false
		}
		end = float64(c.now.sweep) + left + 2
	}
	if end >= most {
		return c.maxIterations, solver.MaxIterations, true
	}
	return int(math.Ceil(end)), reason, true
}

// left returns about how many sweeps the norm still takes to fall to target. Exact norms fall ever more slowly, so the
// ratio of the latest ones tells the least number of sweeps; how the slowest modes fall is the outlook's to say. While
// many modes fall at once, norms follow a power of the sweeps.
func (c *Course) left(target float64) (sweeps float64, ok bool) {
	if c.now.norm <= target {
		return 0, true
	}
	rate := math.Log(c.from.norm/c.now.norm) / float64(c.now.sweep-c.from.sweep)
	falls := c.now.sweep-c.from.sweep >= settled && rate > 0
	log := math.Log(c.now.norm / target)
	if to := c.outlook.sweepsTo(target); to >= c.outlook.early && to < endless {
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
