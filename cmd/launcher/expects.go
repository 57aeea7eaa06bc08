package main

import (
	"context"
	"errors"

	"jacobi/internal/outlook"
	"jacobi/internal/problem"
)

// outlook returns what the run will come to.
func (p *plan) outlook(ctx context.Context) (*outlook.Outlook, error) {
	prob, err := problem.New(p.cfg)
	if err != nil {
		return nil, err
	}
	o, err := outlook.New(ctx, prob)
	return o, errors.Join(err, prob.Close())
}

// expects says in one line how the run will end, or what to say as a warning instead where its type cannot attain the
// tolerance; "" if that is not known.
func (p *plan) expects(ctx context.Context) (text, warning string) {
	o, err := p.outlook(ctx)
	if err != nil {
		return "", "" // check has named the problem's faults
	}
	s := p.cfg.Solver
	if what, do := o.Warning(s.Tolerance); what != "" {
		return "", what + "; " + do
	}
	return o.Expected(s.Tolerance, s.MaxIterations), ""
}
