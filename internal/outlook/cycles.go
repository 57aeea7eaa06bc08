package outlook

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize/english"

	"jacobi/solver"
)

// cycleFactor is the factor by which a cycle of multigrid reduces the norm; solver/multigrid measures 0.02 to 0.05.
const cycleFactor = 0.045

// cyclesTo estimates the cycles until the norm has fallen from one value to another.
func cyclesTo(from, to, factor float64) int {
	return max(1, int(math.Ceil(math.Log(to/from)/math.Log(factor))))
}

// cycleTarget returns the norm at which a run of multigrid ends whose first norm is first; 0 if no norm ends it.
func cycleTarget(first, tolerance, relative float64) float64 { return max(tolerance, relative*first) }

// firstNorm estimates the norm of the initial field. Where the field does not continue its walls, the update of the
// points beside a wall, a quarter of the step, makes up most of it, and that is in none of the slow modes. For a field
// that does continue its walls the estimate is too large, and so are the cycles.
func (o *Outlook) firstNorm() float64 {
	return max(o.norm(0), 0.25*o.Largest()*math.Sqrt(math.Sqrt(o.count)))
}

// between says how far cycles come with fixed points inside the mesh, where the first norm is not estimated.
// docs/methods.md has the numbers.
func between(a time.Duration) string {
	return fmt.Sprintf("6 to 17 cycles divide the norm by 1e8, each in about %s", Round(a))
}

// Round rounds an estimate to one digit.
func Round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d >= 10*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// ExpectedCycles says how a run of multigrid will end, of which a cycle takes about the given time; "" if no tolerance
// ends it, or if the end is unknown.
func (o *Outlook) ExpectedCycles(tolerance, relative float64, maxCycles int, each time.Duration) string {
	if !o.known && cycleTarget(1, tolerance, relative) > 0 {
		return "expected: with fixed points inside the mesh, " + between(each)
	}
	first := o.firstNorm()
	target := cycleTarget(first, tolerance, relative)
	if !o.known || target <= 0 || !(first > 0) {
		return ""
	}
	cycles := cyclesTo(first, target, cycleFactor)
	if cycles > maxCycles {
		return fmt.Sprintf("expected: the tolerance is not met within the %s of solver.max_iterations; "+
			"it takes about %d",
			english.Plural(maxCycles, "cycle", ""), cycles)
	}
	return fmt.Sprintf("expected: the tolerance is met after about %s, %s", english.Plural(cycles, "cycle", ""),
		Round(time.Duration(cycles)*each))
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
	key, value := "solver.tolerance", tolerance
	if relative*o.firstNorm() > tolerance {
		key, value = "solver.relative_tolerance", relative
	}
	return fmt.Sprintf("%s %g is below what float64 attains on this mesh: a norm of %s", key, value,
		About(floor)), "a larger one is met"
}

// many is the number of sweeps from which on MultigridHint speaks.
const many = 1e4

// MultigridHint says how much faster multigrid, of which a cycle takes about the given time, would meet the tolerance
// than Jacobi's method in at most maxIterations sweeps; "" if that makes little difference or is unknown. Where points
// inside are fixed, for which there is no estimate, a run that may do many sweeps counts as one that needs them.
func (o *Outlook) MultigridHint(tolerance float64, maxIterations int, each time.Duration) string {
	if !o.long(tolerance, maxIterations) {
		return ""
	}
	with := o.inFloat64()
	if !o.known {
		return fmt.Sprintf("solver.method multigrid%s: %s", with, between(each))
	}
	cycles := cyclesTo(o.firstNorm(), tolerance, cycleFactor)
	return fmt.Sprintf("solver.method multigrid%s: the tolerance takes about %s, %s", with,
		english.Plural(cycles, "cycle", ""), Round(time.Duration(cycles)*each))
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

// inFloat64 names the type that other methods need, if the field has another one.
func (o *Outlook) inFloat64() string {
	if o.mesh.DType != solver.Float64 {
		return " and grid.dtype float64"
	}
	return ""
}

// CycleError bounds the error, at the worst point, of a field of multigrid with the given norm: the error would be that
// large if it lay in the slowest mode alone.
func (o *Outlook) CycleError(norm float64) float64 {
	return max(o.Attainable(o.mesh.DType).Error, min(peak*norm/math.Sqrt(o.count)/o.slow, o.Largest()))
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
