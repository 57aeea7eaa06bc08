package plan

import (
	"context"
	"errors"

	"jacobi/internal/outlook"
	"jacobi/internal/problem"
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
	s := p.Config.Solver
	if s.FullStart() {
		return e // the norm after the start has no estimate
	}
	if s.Multigrid() {
		e.Warning, e.Do = o.CycleWarning(s.Tolerance, s.RelativeTolerance)
		e.Text = o.ExpectedCycles(s.Tolerance, s.RelativeTolerance, s.MaxIterations, p.cycleTime(!o.Known()))
		return e
	}
	if p.Chebyshev != nil {
		e.Text = o.ExpectedChebyshev(s, p.Chebyshev)
		return e
	}
	e.Warning, e.Do = o.Warning(s.Tolerance)
	e.Text = o.Expected(s.Tolerance, s.MaxIterations)
	e.Hint = o.MultigridHint(s.Tolerance, s.MaxIterations, p.cycleTime(!o.Known()))
	return e
}

func (p *Plan) outlook(ctx context.Context) (*outlook.Outlook, error) {
	prob, err := problem.New(p.Config)
	if err != nil {
		return nil, err
	}
	o, err := outlook.New(ctx, prob)
	return o, errors.Join(err, prob.Close())
}
