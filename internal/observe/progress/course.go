package progress

import (
	"math"
	"time"
)

// course estimates from the norms of a run when it will end.
//
// The norm of sweeps falls about as k^-p exp(-ck) with the number k of sweeps: as a power of it while many modes fall
// at once, and exponentially once the slowest are left. The rates of fall in two stretches of the run, p/k + c each,
// give p and c. Cycles make the norm smaller by a factor that is about the same for all.
type course struct {
	target float64 // the norm that ends the run; 0 if none does
	max    int     // iterations
	sweeps bool    // iterations are sweeps

	// The stretches are from before to from, and from there to now; next replaces from later.
	before, from, next, now norm
}

// norm is that of the field after k iterations.
type norm struct{ k, norm float64 }

const (
	settled = 100 // sweeps of a stretch at least
	growth  = 1.1 // a stretch begins about a tenth of the sweeps ago
)

// add takes the norm of the field after a number of iterations, of which sweeps have done at least one.
func (c *course) add(done int, value float64) {
	c.now = norm{float64(done), value}
	if c.next == (norm{}) {
		c.before, c.from, c.next = c.now, c.now, c.now
	}
	if c.now.k > growth*c.next.k+c.least() {
		c.before, c.from, c.next = c.from, c.next, c.now
	}
}

// least returns the least number of iterations of a stretch.
func (c *course) least() float64 {
	if c.sweeps {
		return settled
	}
	return 1
}

// rate returns the rate of fall between two norms, and where it holds.
func rate(from, to norm) (rate, at float64) {
	return math.Log(from.norm/to.norm) / (to.k - from.k), (from.k + to.k) / 2
}

// end estimates how many iterations the run will do in all. ok is false while the norms do not tell: before they have
// fallen for a while, and while they fall as a power.
func (c *course) end() (iterations int, ok bool) {
	if c.target <= 0 {
		return c.max, true
	}
	r, at := rate(c.from, c.now)
	if c.now.k-c.from.k < c.least() || !(r > 0) {
		return 0, false
	}
	log := math.Log(c.now.norm / c.target)
	power := 0.0
	if c.sweeps && c.from.k > c.before.k {
		earlier, then := rate(c.before, c.from)
		power = max(0, (earlier-r)/(1/then-1/at))
	}
	slow := r - power/at // c of the formula
	left := func(k float64) float64 { return power*math.Log(k/c.now.k) + slow*(k-c.now.k) }
	switch least := c.now.k + log/r; { // rates of sweeps only fall
	case log <= 0:
		return min(c.max, int(c.now.k)), true
	case least >= float64(c.max):
		return c.max, true
	case c.sweeps && c.from.k <= c.before.k, slow < r/2:
		return 0, false
	}
	low, high := c.now.k, c.now.k+log/slow
	for high-low > 1 {
		if middle := (low + high) / 2; left(middle) < log {
			low = middle
		} else {
			high = middle
		}
	}
	return int(min(math.Ceil(high), float64(c.max))), true
}

// recent is the time over which a speed is measured. Earlier sweeps say little about the speed of later ones.
const recent = 5 * time.Second

// speed measures the recent speed of a run.
type speed struct{ marks []mark }

// mark records the number of sweeps done at a time of the run's clock, which does not count while the run is stopped.
type mark struct {
	at     time.Duration
	sweeps int
}

// add adds a mark. Of the marks older than recent it keeps only the newest.
func (s *speed) add(at time.Duration, sweeps int) {
	s.marks = append(s.marks, mark{at, sweeps})
	for len(s.marks) > 2 && at-s.marks[1].at >= recent {
		s.marks = s.marks[1:]
	}
}

// timeFor estimates the time for further sweeps; 0 if it is unknown.
func (s *speed) timeFor(sweeps int) time.Duration {
	if len(s.marks) < 2 || sweeps <= 0 {
		return 0
	}
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	if last.sweeps <= first.sweeps {
		return 0
	}
	t := float64(last.at-first.at) / float64(last.sweeps-first.sweeps) * float64(sweeps)
	return time.Duration(min(t, math.MaxInt64/2))
}
