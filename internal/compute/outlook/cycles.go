package outlook

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize/english"

	"jacobi/solver"
)

// What a cycle leaves of the norm on average, at most, in nearly all random problems of internal/compute/oracle: 246
// took up to 7 cycles to a relative tolerance of 1e-8, and 142 with fixed points inside up to 15.
const (
	leaves       = 0.1
	leavesPinned = 0.3
)

// cyclesTo estimates the cycles until the norm has fallen from one value to another.
func cyclesTo(from, to, factor float64) int {
	return max(1, int(math.Ceil(math.Log(to/from)/math.Log(factor))))
}

// cycleTarget returns the norm at which a run of multigrid ends whose first norm is first; 0 if no norm ends it.
func cycleTarget(first, tolerance, relative float64) float64 { return max(tolerance, relative*first) }

// Target estimates the norm at which a run from the field 0 ends; 0 if no norm ends it, or if there is no estimate.
func (o *Outlook) Target(tolerance, relative float64) float64 {
	if relative == 0 || !o.known {
		return tolerance
	}
	return cycleTarget(o.firstNorm(), tolerance, relative)
}

// deciding returns the key of the tolerance that ends a run first, and its value.
func (o *Outlook) deciding(tolerance, relative float64) (key string, value float64) {
	if relative*o.firstNorm() > tolerance {
		return "solver.relative_tolerance", relative
	}
	return "solver.tolerance", tolerance
}

// firstNorm estimates the norm of the initial field. Where the field does not continue its walls, the update of the
// points beside a wall, a quarter of the step, makes up most of it, and that is in none of the slow modes. For a field
// that does continue its walls the estimate is too large, and so are the cycles.
func (o *Outlook) firstNorm() float64 {
	return max(o.norm(0), 0.25*o.Largest()*math.Sqrt(math.Sqrt(o.count)))
}

// Round rounds an estimate to one digit.
func Round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d >= 10*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// cycles forecasts the most cycles to a tolerance. ok is false if that is unknown: with fixed points inside the mesh,
// where the first norm has no estimate, unless the tolerance is relative to it.
func (o *Outlook) cycles(tolerance, relative float64) (most int, ok bool) {
	first, factor := 1.0, leaves
	if !o.known {
		tolerance, factor = 0, leavesPinned
	}
	if tolerance > 0 {
		first = o.firstNorm()
	}
	target := cycleTarget(first, tolerance, relative)
	if !(target > 0) || !(first > 0) {
		return 0, false
	}
	return cyclesTo(first, target, factor), true
}

// within formats a forecast of cycles that each take about the given time.
func within(most int, each time.Duration) string {
	return fmt.Sprintf("within about %s, each in about %s", english.Plural(most, "cycle", ""), Round(each))
}

// ExpectedCycles says how a run of multigrid will end if a cycle takes about the given time; "" if no tolerance ends
// it, or if the end is unknown.
func (o *Outlook) ExpectedCycles(tolerance, relative float64, maxCycles int, each time.Duration) string {
	if cycleTarget(1, tolerance, relative) <= 0 {
		return ""
	}
	most, ok := o.cycles(tolerance, relative)
	switch {
	case !ok && !o.known:
		return fmt.Sprintf("expected: a cycle takes about %s", Round(each))
	case !ok:
		return ""
	case most > maxCycles:
		return fmt.Sprintf("expected: the end is at the %s of solver.max_iterations, or the tolerance is met before; "+
			"without that key it is met %s", english.Plural(maxCycles, "cycle", ""), within(most, each))
	}
	return "expected: the tolerance is met " + within(most, each)
}

// cycleNorm returns the norm at which rounding stalls cycles: three halves of a unit in the last place of the values,
// at every point. At 32 x 32 to 1024 x 1024 points, cycles with values up to 1 stalled at 1.0 to 1.8 times 2^-53
// times the square root of the points, and Largest may be half of the largest value.
func (o *Outlook) cycleNorm() float64 { return 0x1.8p-52 * o.Largest() * math.Sqrt(o.count) }

// CycleWarning warns of a tolerance that no cycles of multigrid meet. Otherwise what and do are empty.
func (o *Outlook) CycleWarning(tolerance, relative float64) (what, do string) {
	return o.floorWarning(tolerance, relative, o.cycleNorm())
}

// floorWarning warns of a tolerance below the norm floor, at which rounding stalls a method.
func (o *Outlook) floorWarning(tolerance, relative, floor float64) (what, do string) {
	target := cycleTarget(o.firstNorm(), tolerance, relative)
	if !o.known || target <= 0 || target >= floor {
		return "", ""
	}
	key, value := o.deciding(tolerance, relative)
	return fmt.Sprintf("%s %g is below what float64 attains on this mesh: a norm of %s", key, value,
		About(floor)), "a larger one is met"
}

// many is the number of sweeps from which on MultigridHint speaks.
const many = 1e4

// MultigridHint says how much faster multigrid, with cycles of about the given time, would meet the tolerance than
// Jacobi's method in at most maxIterations sweeps; "" if that makes little difference or is unknown. Where points
// inside are fixed, for which there is no estimate, a run that may do many sweeps counts as one that needs them.
func (o *Outlook) MultigridHint(tolerance float64, maxIterations int, each time.Duration) string {
	if !o.long(tolerance, maxIterations) {
		return ""
	}
	most, ok := o.cycles(tolerance, 0)
	if !ok {
		return "solver.method multigrid: 1e-8 of the first norm is met " + within(cyclesTo(1, 1e-8, leavesPinned), each)
	}
	return "solver.method multigrid: the tolerance is met " + within(most, each)
}

// long reports whether Jacobi's method, in at most maxIterations sweeps, needs many to a tolerance that other methods
// meet.
func (o *Outlook) long(tolerance float64, maxIterations int) bool {
	if what, _ := o.CycleWarning(tolerance, 0); what != "" || tolerance == 0 {
		return false
	}
	if !o.known {
		return float64(maxIterations) >= many
	}
	return o.sweepsTo(tolerance) >= many
}

// Cycles forecasts the end of a run of multigrid from its norms so far.
type Cycles struct {
	tolerance, relative float64
	max                 int
	first, last, now    point
}

// NewCycles returns a Cycles for a run with these keys.
func NewCycles(tolerance, relative float64, maxCycles int) *Cycles {
	return &Cycles{tolerance: tolerance, relative: relative, max: maxCycles}
}

// Add adds the norm of the field after a number of cycles.
func (c *Cycles) Add(cycles int, norm float64) {
	if c.first == (point{}) {
		c.first = point{cycles, norm}
	}
	c.last, c.now = c.now, point{cycles, norm}
}

// End estimates how many cycles the run will do in all, and why it will end. ok is false where that is unknown.
func (c *Cycles) End() (cycles int, reason solver.StopReason, ok bool) {
	target := cycleTarget(c.first.norm, c.tolerance, c.relative)
	factor := math.Pow(c.now.norm/c.last.norm, 1/float64(c.now.sweep-c.last.sweep))
	switch {
	case target <= 0:
		return c.max, solver.MaxIterations, true
	case !(factor > 0 && factor < 1):
		return 0, "", false
	}
	end := c.now.sweep
	if c.now.norm > target {
		end += cyclesTo(c.now.norm, target, factor)
	}
	if end >= c.max {
		return c.max, solver.MaxIterations, true
	}
	return end, solver.Converged, true
}
