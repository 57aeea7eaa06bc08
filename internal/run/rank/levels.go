package rank

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda"
	cpulevels "jacobi/internal/compute/cpu/levels"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// levels is what a rank has for multigrid in place of a backend.
type levels struct {
	layout   multigrid.Layout
	stripes  [][]solver.Stripe // by level and rank
	device   multigrid.Device
	gpu      *cuda.Levels        // device, if that is a *cuda.Levels
	exchange solver.Exchange     // nil for a rank that is alone
	direct   *cuda.LevelExchange // exchange, if that is a *cuda.LevelExchange
	search   multigrid.CG        // nil for plain cycles
}

// stages are the coarser meshes on which full multigrid begins the run, the finest one first; none for other runs.
type stages []multigrid.Grid

// openStages opens the stages of a run that begins with full multigrid, once the field is loaded. All ranks call it.
func (r *run) openStages(ctx context.Context) (stages, error) {
	if r.levels == nil || !r.Config.Solver.FullStart() {
		return nil, nil
	}
	layouts, err := multigrid.StagesOf(r.levels.layout, r.Levels.Stripes, r.id.Rank, r.problem, r.Levels.Points)
	if err != nil {
		return nil, fmt.Errorf("full multigrid: %w", err)
	}
	open, err := multigrid.OpenStages(ctx, r.levels.grid(r.id.Rank), layouts)
	if err != nil {
		return nil, r.onGPU(fmt.Errorf("full multigrid: %w", err))
	}
	return open, nil
}

// openLevels opens the levels of multigrid.
func (r *run) openLevels(ctx context.Context) error {
	l := r.LevelLayout(r.id.Rank)
	l.Magnitude = r.layout.Magnitude
	if rows := r.Operator.Fixed; rows != nil {
		var err error
		if l.Fixed, err = r.fixedPoints(ctx, r.Levels.Plan, rows); err != nil {
			return err
		}
	}
	r.levels = &levels{layout: l, stripes: r.Levels.Stripes}
	if r.sweepsOnGPU() {
		d, err := cuda.NewLevels(r.gpus.Driver, l,
			cuda.Options{Device: r.chosen.Index, Timeout: r.Config.Halo.Timeout})
		if err != nil {
			return err
		}
		r.levels.device, r.levels.gpu, r.describe = d, d, d.Describe()
		if r.accelerated() {
			s, err := cuda.NewCG(d)
			if err != nil {
				return errors.Join(err, d.Close())
			}
			r.levels.search = s
		}
	} else {
		d, err := cpulevels.New(l, r.threads(), r.cpuKernel())
		if err != nil {
			return err
		}
		r.levels.device, r.describe, r.kernel = d, d.Describe(), d.Kernel()
		if r.accelerated() {
			r.levels.search = cpulevels.NewCG(d)
		}
	}
	r.open.add(r.levels.device.Close)
	r.field = levelField{r.levels.device}
	return nil
}

// accelerated reports whether conjugate gradients accelerate the cycles.
func (r *run) accelerated() bool {
	return r.Config.Solver.Accelerated(r.layout.Operator.Fixed != nil)
}

// arrays returns the number of arrays in a checkpoint, as in checkpoint.Manifest.
func (r *run) arrays() int {
	if r.accelerated() {
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

// connectLevels opens the exchange with the neighbours, over links and, where there are windows, over peer memory.
func (r *run) connectLevels(links [2]solver.RowLink, w windows) error {
	l, rank := r.levels, r.id.Rank
	if len(l.stripes[0]) == 1 {
		return nil
	}
	host := solver.NewHostExchange(links, solver.HostOptions{Rank: rank, Most: multigrid.Overlap *
		l.layout.Plan.Levels[0].Mesh.RowBytes()})
	l.exchange = host
	if w.neighbours == [2]*cuda.Window{} && len(w.all) == 0 {
		return nil
	}
	x, err := cuda.NewLevelExchange(l.gpu, host, rank, w.neighbours, w.all, r.sole)
	if err != nil {
		return err
	}
	r.open.add(x.Close)
	l.exchange, l.direct = x, x
	return nil
}

// grid returns the finest mesh with its levels.
func (l *levels) grid(rank int) multigrid.Grid {
	return multigrid.Grid{Device: l.device, Layout: l.layout, Stripes: l.stripes, Rank: rank, Exchange: l.exchange}
}

// stateRows reads the state of a rank: the field and the direction.
type stateRows struct {
	field  levelField
	search multigrid.CG
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

// cycles returns multigrid at work on the loaded field.
func (r *run) cycles(sums *solver.Reductions) solver.Iteration {
	l := r.levels
	o := multigrid.Options{Cycles: r.resumed.Start.Sweeps, CG: l.search, Stages: r.stages}
	if l.direct != nil {
		o.Settle = l.direct.Settle // the other ranks' memory goes when they end
	}
	return multigrid.New(l.grid(r.id.Rank), sums, o)
}
