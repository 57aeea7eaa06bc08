package outlook

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/solver"
	"jacobi/solver/chebyshev"
)

// Chebyshev forecasts the end of a run of Chebyshev's iteration from its norms so far.
type Chebyshev struct {
	solver configs.Solver
	plan   *chebyshev.Plan
	first  float64 // norm
	now    point
}

// NewChebyshev returns a Chebyshev for a run with these keys and this plan.
func NewChebyshev(s configs.Solver, p *chebyshev.Plan) *Chebyshev {
	return &Chebyshev{solver: s, plan: p}
}

// Add adds the norm of a sweep that has one.
func (c *Chebyshev) Add(sweep int, norm float64) {
	if c.first == 0 {
		c.first = norm
	}
	c.now = point{sweep, norm}
}

// End estimates how many sweeps the run will do in all, and why it will end. ok is false where that is unknown.
func (c *Chebyshev) End() (sweeps int, reason solver.StopReason, ok bool) {
	target := cycleTarget(c.first, c.solver.Tolerance, c.solver.RelativeTolerance)
	if c.first == 0 {
		return 0, "", false
	}
	last, err := c.plan.Last(c.solver.MaxIterations)
	if err != nil || target <= 0 {
		return last, solver.MaxIterations, err == nil
	}
	end := c.now.sweep + 1
	if c.now.norm > target {
		end += chebyshevSweeps(c.plan, c.now.norm, target)
	}
	if end > last {
		return last, solver.MaxIterations, true
	}
	return end, solver.Converged, true
}

// chebyshevSweeps estimates the sweeps until the norm has fallen from one value to another: whole quarters of cycles.
func chebyshevSweeps(p *chebyshev.Plan, from, to float64) int {
	quarter := math.Pow(p.Factor(), 1./chebyshev.Quarters)
	return p.Stride * cyclesTo(from, to, quarter)
}

// ChebyshevWarning warns of a tolerance that Chebyshev's iteration does not meet. It stalls at 0.2 to 0.6 times the
// norm of cycles, at 33 x 33 to 513 x 513 points.
func (o *Outlook) ChebyshevWarning(s configs.Solver) (what, do string) {
	return o.floorWarning(s.Tolerance, s.RelativeTolerance, 0.4*o.cycleNorm())
}

// ExpectedChebyshev says how a run of Chebyshev's iteration will end; "" if no tolerance ends it, or if the end is
// unknown.
func (o *Outlook) ExpectedChebyshev(s configs.Solver, p *chebyshev.Plan) string {
	first := o.firstNorm()
	target := cycleTarget(first, s.Tolerance, s.RelativeTolerance)
	if !o.known || target <= 0 || !(first > 0) {
		return ""
	}
	sweeps := 1 + chebyshevSweeps(p, first, target)
	if sweeps > s.MaxIterations {
		return fmt.Sprintf("expected: the tolerance is not met within the %s of solver.max_iterations; "+
			"it takes about %d", english.Plural(s.MaxIterations, "sweep", ""), sweeps)
	}
	return fmt.Sprintf("expected: the tolerance is met after about %s", english.Plural(sweeps, "sweep", ""))
}

// ChebyshevHint is MultigridHint for Chebyshev's iteration with the keys s and the given operator, where multigrid
// cannot be used.
func (o *Outlook) ChebyshevHint(s configs.Solver, op solver.Operator) string {
	if !o.long(s.Tolerance, s.MaxIterations) {
		return ""
	}
	mesh := o.mesh
	mesh.DType = solver.Float64
	p, err := chebyshev.NewPlan(mesh, op)
	if err != nil {
		return ""
	}
	from, to, what := o.firstNorm(), s.Tolerance, "the tolerance takes about %s sweeps"
	if !o.known {
		from, to, what = 1, 1e-8, "about %s sweeps divide the norm by 1e8"
	}
	sweeps := 1 + chebyshevSweeps(p, from, to)
	text := fmt.Sprintf("solver.method chebyshev%s: "+what, o.inFloat64(), humanize.Comma(int64(sweeps)))
	if sweeps > s.MaxIterations {
		text += fmt.Sprintf("; solver.max_iterations %d allows fewer", s.MaxIterations)
	}
	return text
}
