package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/examine"
	"jacobi/internal/launch"
	"jacobi/internal/output"
	"jacobi/internal/problem"
	"jacobi/internal/wire"
)

// withoutPlan checks the sections of cfg that need no plan and have no fault yet. It serves a run whose keys or places
// allow no plan.
func (d *diagnosis) withoutPlan(ctx context.Context, cfg configs.Config) {
	sound := func(sections ...string) bool {
		return !slices.ContainsFunc(d.Faults, func(f finding) bool {
			return slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(f.What, s+".") })
		})
	}
	if sound("grid", "problem") {
		prob, err := problem.New(cfg)
		d.fault(err, correctProblem)
		if err == nil {
			d.fault(prob.Close(), correctProblem)
		}
	}
	if sound("output") && len(cfg.Output.Names()) > 0 {
		d.fault(output.CheckDir(cfg.Output.Dir), correctOutput)
	}
	if sound("nats") {
		d.server(ctx, cfg)
	}
}

// outlook estimates how the run would end, and warns of a tolerance that its type cannot attain.
func (d *diagnosis) outlook(ctx context.Context, p *plan) {
	o, err := p.outlook(ctx)
	if err != nil {
		return // the problem's faults have been reported
	}
	s := p.cfg.Solver
	d.Expected = o.Expected(s.Tolerance, s.MaxIterations)
	if what, do := o.Warning(s.Tolerance); what != "" {
		d.warn(do, "%s", what)
	}
}

// output measures output.dir.
func (d *diagnosis) output(p *plan) error {
	o := p.cfg.Output
	if len(o.Names()) == 0 {
		return nil
	}
	room, err := p.room()
	if err != nil {
		return err
	}
	place := examine.Place{Key: "output.dir", Dir: o.Dir, Needed: room.Bytes()}
	if d.Output, err = place.Measure(); err != nil {
		return fmt.Errorf("output.dir %q: %w", o.Dir, err)
	}
	return nil
}

// server tests the NATS server that the user named, if any.
func (d *diagnosis) server(ctx context.Context, cfg configs.Config) {
	if cfg.NATS.URL == "" {
		return
	}
	conn, err := wire.Connect(ctx, wire.Options{Server: cfg.NATS, Name: "jacobi launcher (doctor)",
		Timeout: connectTimeout, Logger: zap.NewNop()})
	if err != nil {
		d.fault(fmt.Errorf("nats.url: %w", err), "start a server there, or correct nats.url and the key of its user: "+
			"nats.password_file, creds, nkey or cert, and ca")
		return
	}
	conn.Close()
}

// reach tests whether the hosts answer.
func (d *diagnosis) reach(ctx context.Context, p *plan, ssh launch.SSH, scr *screen) {
	h, err := reach(ctx, p, ssh, scr.say)
	if err != nil {
		d.fault(err, "ssh HOST has to work without a question, and both programs, of this version, to be there in "+
			"--remote-bin")
		return
	}
	d.fault(h.close(), "look whether the host is still there")
}
