package rank

import (
	"context"

	"jacobi/cuda"
	cpulevels "jacobi/internal/cpu/levels"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// levels is what a rank has for multigrid in place of a backend.
type levels struct {
	layout   multigrid.Layout
	stripes  [][]solver.Stripe // by level and rank
	device   multigrid.Device
	exchange multigrid.Exchange // nil for a rank that is alone
}

// forCycles makes p the plan of a run with multigrid: one sum a cycle. A single rank has no neighbours.
func (p *plan) forCycles() {
	p.passSweeps, p.ahead = 1, 1
	if len(p.stripes) == 1 {
		p.layout.Neighbour = [2]bool{}
	}
}

// openLevels opens the levels of multigrid.
func (o *opened) openLevels(open *closers) error {
	p, err := multigrid.NewPlan(o.plan.layout.Mesh, o.plan.layout.Operator)
	if err != nil {
		return err
	}
	stripes, tail := p.Divide(o.stripes, multigrid.TailPoints)
	l := p.LayoutOf(stripes, tail, o.id.Rank)
	l.Magnitude, l.Source = o.plan.layout.Magnitude, o.plan.layout.Operator.Source
	if rows := o.plan.layout.Operator.Fixed; rows != nil {
		if l.Fixed, err = p.FixedPoints(rows); err != nil {
			return err
		}
	}
	o.levels = &levels{layout: l, stripes: stripes}
	if o.sweepsOnGPU() {
		d, err := cuda.NewLevels(o.gpus.Driver, l,
			cuda.Options{Device: o.chosen.Index, Timeout: o.Config.Halo.Timeout})
		if err != nil {
			return err
		}
		o.levels.device, o.describe = d, d.Describe()
	} else {
		d, err := cpulevels.New(l, o.threads(), o.cpuKernel())
		if err != nil {
			return err
		}
		o.levels.device, o.describe, o.kernel = d, d.Describe(), d.Kernel()
	}
	open.add(o.levels.device.Close)
	o.field = levelField{o.levels.device}
	return nil
}

// connect opens the exchange with the neighbours.
func (l *levels) connect(rank int, links [2]solver.RowLink) error {
	if len(l.stripes[0]) == 1 {
		return nil
	}
	x, err := multigrid.NewHostExchange(l.device, l.layout, l.stripes, rank, links)
	if err != nil {
		return err
	}
	l.exchange = x
	return nil
}

// levelField is the field of a device.
type levelField struct{ device multigrid.Device }

// Load implements field.
func (f levelField) Load(ctx context.Context, rows solver.RowSource) error {
	return f.device.Load(ctx, rows)
}

// CopyRows implements field.
func (f levelField) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	return f.device.CopyRows(ctx, 0, multigrid.Unknowns, s, dst)
}

// cycle runs multigrid. record gets the norms on rank 0.
func (r *ready) cycle(ctx context.Context, record func(first int, norms []float64) error) (solver.Result, error) {
	c := r.Config.Solver
	return multigrid.Run(ctx, r.levels.device, r.levels.exchange, r.reducer, multigrid.Options{
		Start: r.resumed.Start, Magnitude: r.layout.Magnitude, Tail: r.levels.layout.Tail,
		Tolerance: c.Tolerance, Relative: c.RelativeTolerance, MaxCycles: c.MaxIterations,
		Stop: r.stopRequested(), Saver: r.solverSaver(), SaveEvery: r.Config.Checkpoint.Every.Sweeps,
		OnNorm: func(cycles int, norm float64) error {
			r.team.SetSweeps(cycles)
			if r.id.Rank != 0 {
				return nil
			}
			norms := []float64{norm}
			if r.saver != nil {
				r.saver.AddNorms(norms)
			}
			return record(cycles, norms)
		},
	})
}
