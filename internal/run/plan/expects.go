package plan

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jacobi/internal/compute/problem"
	"jacobi/solver"
)

// Expectation says what a look at the problem tells of the end of the run. What is not known is "".
type Expectation struct {
	Warning string // the type of the field cannot attain the tolerance
	Do      string // the remedy of Warning
	Hint    string // another method would be much faster
}

// Expects looks at the problem. The Expectation is empty if the problem has faults, and for a coefficient that is no
// number: all of it would have to be read.
func (p *Plan) Expects(ctx context.Context) (e Expectation) {
	prob, err := p.problem.Again(ctx)
	if err != nil {
		return e // Check reports the problem's faults
	}
	if !prob.Operator().Weighted {
		e, err = p.expects(ctx, prob)
	}
	if errors.Join(err, prob.Close()) != nil {
		return Expectation{}
	}
	return e
}

// many is the number of sweeps from which on a run is told of a method that takes far less time.
const many = 1e4

func (p *Plan) expects(ctx context.Context, prob *problem.Problem) (e Expectation, err error) {
	s, entry := p.Config.Solver, p.Config.Solver.Entry()
	largest, err := prob.Largest(ctx)
	if err != nil {
		return e, err
	}
	e.Warning, e.Do = p.tooFine(largest)
	sweeps := math.Log(1e8) / prob.LeastEigenvalue() // until the norm has fallen by a factor of 1e8, or some more
	if e.Warning == "" && entry.Instead != "" && s.Tolerance+s.RelativeTolerance > 0 &&
		min(sweeps, float64(s.MaxIterations)) >= many {
		e.Hint = fmt.Sprintf("solver.method %s meets a tolerance in far less time, mostly in 5 to 20 cycles",
			entry.Instead)
	}
	return e, nil
}

// tooFine warns of a tolerance that is far below what rounding leaves of the norm: about half a unit in the last place
// of the values, at every point. Otherwise what and do are empty.
func (p *Plan) tooFine(largest float64) (what, do string) {
	s, m := p.Config.Solver, p.Mesh
	values := largest * math.Sqrt(float64(m.NX)*float64(m.NY))
	left := func(t solver.DType) float64 {
		if t == solver.Float32 {
			return 0x1p-24 * values
		}
		return 0x1p-53 * values
	}
	key, value, target := "solver.tolerance", s.Tolerance, s.Tolerance
	if relative := s.RelativeTolerance * values; relative > target { // the first norm is hardly larger than the values'
		key, value, target = "solver.relative_tolerance", s.RelativeTolerance, relative
	}
	const far = 100
	if target == 0 || target >= left(m.DType)/far {
		return "", ""
	}
	what = fmt.Sprintf("%s %g is below what %s attains on this mesh", key, value, m.DType)
	if m.DType == solver.Float32 && target >= left(solver.Float64) {
		return what, "grid.dtype=float64 attains it"
	}
	return what, "a larger one is met"
}
