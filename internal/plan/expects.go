package plan

import (
	"context"
	"errors"

	"jacobi/internal/outlook"
	"jacobi/internal/problem"
	"jacobi/solver"
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
	o, op, err := p.outlook(ctx)
	if err != nil {
		return e // Check reports the problem's faults
	}
	s := p.Config.Solver
	if s.FullStart() {
		e.Warning, e.Do = o.CycleWarning(s.Tolerance, 0) // the norm after the start has no estimate
		return e
	}
	if s.Multigrid() {
		e.Warning, e.Do = o.CycleWarning(s.Tolerance, s.RelativeTolerance)
		e.Text = o.ExpectedCycles(s.Tolerance, s.RelativeTolerance, s.MaxIterations, p.cycleTime(!o.Known()))
		return e
	}
	if p.Chebyshev != nil {
		e.Warning, e.Do = o.ChebyshevWarning(s)
		e.Text = o.ExpectedChebyshev(s, p.Chebyshev)
		return e
	}
	e.Warning, e.Do = o.Warning(s.Tolerance)
	e.Text = o.Expected(s.Tolerance, s.MaxIterations)
	if len(p.Ranks) > p.Config.CycleRanks() {
		e.Hint = o.ChebyshevHint(s, op)
	} else {
		e.Hint = o.MultigridHint(s.Tolerance, s.MaxIterations, p.cycleTime(!o.Known()))
	}
	return e
}

// outlook returns the outlook of the run and the operator of its mesh, whose rows can no longer be read.
func (p *Plan) outlook(ctx context.Context) (*outlook.Outlook, solver.Operator, error) {
	prob, err := problem.New(p.Config)
	if err != nil {
		return nil, solver.Operator{}, err
	}
	op := prob.Operator()
	o, err := outlook.New(ctx, prob)
	return o, op, errors.Join(err, prob.Close())
}
