package rank

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda"
	cpulevels "jacobi/internal/cpu/levels"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// levels is what a rank has for multigrid in place of a backend.
type levels struct {
	layout   multigrid.Layout
	points   int               // bounds the levels that every rank holds as a whole, see multigrid.Plan.Divide
	stripes  [][]solver.Stripe // by level and rank
	device   multigrid.Device
	gpu      *cuda.Levels             // device, if that is a *cuda.Levels
	exchange multigrid.StagedExchange // nil for a rank that is alone
	direct   *cuda.LevelExchange      // exchange, if that is a *cuda.LevelExchange
	search   multigrid.Search         // nil for plain cycles
}

// stages are the coarser meshes on which full multigrid begins the run, the finest one first; none for other runs.
type stages []multigrid.Stage

// openStages opens the stages of a run that begins with full multigrid, once the field is loaded. All ranks call it.
func (o *opened) openStages(ctx context.Context) (stages, error) {
	if o.levels == nil || !o.Config.Solver.FullStart() {
		return nil, nil
	}
	layouts, err := multigrid.StagesOf(o.levels.layout, o.levels.stripes, o.id.Rank, o.problem, o.levels.points)
	if err != nil {
		return nil, fmt.Errorf("full multigrid: %w", err)
	}
	open, err := multigrid.OpenStages(ctx, o.levels.device, o.levels.exchange, layouts)
	if err != nil {
		return nil, o.onGPU(fmt.Errorf("full multigrid: %w", err))
	}
	return open, nil
}

// forCycles makes p the plan of a run with multigrid: one sum a cycle. A single rank has no neighbours.
func (p *plan) forCycles() {
	p.passSweeps, p.ahead, p.sums = 1, 1, multigrid.ProductSums
	if len(p.stripes) == 1 {
		p.layout.Neighbour = [2]bool{}
	}
}

// openLevels opens the levels of multigrid.
func (o *opened) openLevels(ctx context.Context, open *closers) error {
	p, err := multigrid.NewPlan(o.plan.layout.Mesh, o.plan.layout.Operator)
	if err != nil {
		return err
	}
	points := multigrid.TailPoints
	if o.reachAll() {
		points = cuda.TailPoints
	}
	stripes, tail := p.Divide(o.stripes, points)
	l := p.LayoutOf(stripes, tail, o.id.Rank)
	l.Magnitude, l.Source = o.plan.layout.Magnitude, o.plan.layout.Operator.Source
	if rows := o.plan.layout.Operator.Fixed; rows != nil {
		if l.Fixed, err = o.fixedPoints(ctx, p, rows); err != nil {
			return err
		}
	}
	o.levels = &levels{layout: l, points: points, stripes: stripes}
	if o.sweepsOnGPU() {
		d, err := cuda.NewLevels(o.gpus.Driver, l,
			cuda.Options{Device: o.chosen.Index, Timeout: o.Config.Halo.Timeout})
		if err != nil {
			return err
		}
		o.levels.device, o.levels.gpu, o.describe = d, d, d.Describe()
		if o.accelerated() {
			s, err := cuda.NewSearch(d)
			if err != nil {
				return errors.Join(err, d.Close())
			}
			o.levels.search = s
		}
	} else {
		d, err := cpulevels.New(l, o.threads(), o.cpuKernel())
		if err != nil {
			return err
		}
		o.levels.device, o.describe, o.kernel = d, d.Describe(), d.Kernel()
		if o.accelerated() {
			o.levels.search = cpulevels.NewSearch(d)
		}
	}
	open.add(o.levels.device.Close)
	o.field = levelField{o.levels.device}
	return nil
}

// accelerated reports whether conjugate gradients accelerate the cycles.
func (l *laidOut) accelerated() bool {
	return l.Config.Solver.Accelerated(l.layout.Operator.Fixed != nil)
}

// arrays returns the number of arrays in a checkpoint, as in checkpoint.Manifest.
func (l *laidOut) arrays() int {
	if l.accelerated() {
		return 2
	}
	return 0
}

// loadSearch prepares the search of a device whose field is loaded; direction is nil at the start of a run.
func (l *levels) loadSearch(ctx context.Context, direction solver.RowSource) error {
	if l == nil || l.search == nil {
		return nil
	}
	return l.search.Load(ctx, direction)
}

// connect opens the exchange with the neighbours, over links and, where there are zones, over peer memory.
func (l *levels) connect(rank int, links [2]solver.RowLink, peers zonePeers, sole bool, open *closers) error {
	if len(l.stripes[0]) == 1 {
		return nil
	}
	host, err := multigrid.NewHostExchange(l.device, l.layout, l.stripes, rank, links)
	if err != nil {
		return err
	}
	l.exchange = host
	if peers.none() {
		return nil
	}
	x, err := cuda.NewLevelExchange(l.gpu, host, l.stripes, rank, peers.neighbours, peers.all, sole)
	if err != nil {
		return err
	}
	open.add(x.Close)
	l.exchange, l.direct = x, x
	return nil
}

// stateRows reads the state of a rank: the field and the direction.
type stateRows struct {
	field  levelField
	search multigrid.Search
}

// CopyRows implements checkpoint.Rows.
func (r stateRows) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if err := r.field.CopyRows(ctx, s, dst[:len(dst)/2]); err != nil {
		return err
	}
	return r.search.CopyRows(ctx, s, dst[len(dst)/2:])
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
	var exchange multigrid.Exchange
	if r.levels.exchange != nil {
		exchange = r.levels.exchange
	}
	result, err := multigrid.Run(ctx, r.levels.device, r.counts.cycle(exchange), r.reducer, multigrid.Options{
		Search: r.levels.search, Stages: r.stages,
		Start: r.resumed.Start, Magnitude: r.layout.Magnitude, Tail: r.levels.layout.Tail,
		Tolerance: c.Tolerance, Relative: c.RelativeTolerance, MaxCycles: c.MaxIterations,
		Stop: r.stopRequested(), Saver: r.solverSaver(), SaveEvery: r.Config.Checkpoint.Every.Sweeps,
		Samples: r.samples,
		OnStep:  r.tracer.OnStep(),
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
	if err == nil && r.levels.direct != nil {
		err = r.levels.direct.Settle(ctx) // the other ranks' memory goes when they end
	}
	return result, err
}
