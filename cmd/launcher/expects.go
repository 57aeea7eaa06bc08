package main

import (
	"context"
	"errors"

	"jacobi/internal/outlook"
	"jacobi/internal/problem"
)

// outlook estimates how the run will end.
func (p *plan) outlook(ctx context.Context) (*outlook.Outlook, error) {
	prob, err := problem.New(p.cfg)
	if err != nil {
		return nil, err
	}
	o, err := outlook.New(ctx, prob)
	return o, errors.Join(err, prob.Close())
}

// expects says in one line how the run will end. If its type cannot attain the tolerance, it returns a warning instead.
// Both are "" if the end is unknown.
func (p *plan) expects(ctx context.Context) (text, warning string) {
	o, err := p.outlook(ctx)
	if err != nil {
		return "", "" // check has reported the problem's faults
	}
	s := p.cfg.Solver
	if what, do := o.Warning(s.Tolerance); what != "" {
		return "", what + "; " + do
	}
	return o.Expected(s.Tolerance, s.MaxIterations), ""
}
