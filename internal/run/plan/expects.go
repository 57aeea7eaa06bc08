package plan

import (
	"context"
	"errors"

	"jacobi/internal/compute/outlook"
	"jacobi/internal/compute/problem"
)

// Expectation says how a run will end. What is not known is "".
type Expectation struct {
	Text    string // the expected end, in one line
	Warning string // the type of the field cannot attain the tolerance
	Do      string // the remedy of Warning
	Hint    string // another method would be much faster
}

// Expects estimates how the run will end. The Expectation is empty if the problem has faults.
func (p *Plan) Expects(ctx context.Context) (e Expectation) {
	o, err := p.outlook(ctx)
	if err != nil {
		return e // Check reports the problem's faults
	}
	s, can := p.Config.Solver, p.Config.Solver.Entry()
	key, _ := p.Config.Problem.Weighted()
	weighted := key != "" // cycles and their number depend on the coefficient, which nobody has looked at
	if s.FullStart() {
		e.Warning, e.Do = o.CycleWarning(s.Tolerance, 0) // the norm after the start has no estimate
		return e
	}
	if can.Levels {
		e.Warning, e.Do = o.CycleWarning(s.Tolerance, s.RelativeTolerance)
		if weighted {
			return e
		}
		e.Text = o.ExpectedCycles(s.Tolerance, s.RelativeTolerance, s.MaxIterations, p.cycleTime(!o.Known()))
		return e
	}
	target := o.Target(s.Tolerance, s.RelativeTolerance)
	e.Warning, e.Do = o.Warning(s.Tolerance, s.RelativeTolerance)
	if !can.Modes {
		return e
	}
	e.Text = o.Expected(target, s.MaxIterations)
	if !weighted {
		e.Hint = o.MultigridHint(target, s.MaxIterations, p.cycleTime(!o.Known()))
	}
	return e
}

// outlook returns the outlook of the run.
func (p *Plan) outlook(ctx context.Context) (*outlook.Outlook, error) {
	prob, err := problem.New(p.Config)
	if err != nil {
		return nil, err
	}
	o, err := outlook.New(ctx, prob)
	return o, errors.Join(err, prob.Close())
}
