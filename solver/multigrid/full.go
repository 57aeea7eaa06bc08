package multigrid

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// Full multigrid begins a run with the solution of a coarser mesh in place of the initial field: the problem is solved
// on the coarsest mesh, and from there on each mesh begins with the interpolated field of the coarser one and does one
// cycle (A. Brandt, "Multi-level adaptive solutions to boundary-value problems", 1977). Each coarser mesh is a stage.

// StageLayout is one of the coarser meshes on which full multigrid solves the problem of a run.
type StageLayout struct {
	Layout
	Stripes [][]solver.Stripe // by level and rank; of one rank if every rank holds the mesh as a whole
	Rows    solver.RowSource  // the walls, and the values of fixed points
}

// shared reports whether the ranks share the mesh.
func (s StageLayout) shared() bool { return len(s.Stripes[0]) > 1 }

// StagesOf returns the stages of a rank with the given layout of the finest mesh, the finest stage first. divided is
// that of Plan.Divide. points bounds the meshes that every rank holds as a whole, as in Divide.
func StagesOf(l Layout, divided [][]solver.Stripe, rank int, initial Initial, points int) ([]StageLayout, error) {
	var stages []StageLayout
	finest, fixed := l.Plan.Levels[0].Mesh, FixedRuns(nil)
	if l.Fixed != nil {
		fixed = l.Fixed[0]
	}
	for depth := 1; ; depth++ {
		p, err := l.Plan.Coarser()
		if p == nil || err != nil {
			return stages, err
		}
		whole, magnitude, sourced := []solver.Stripe{p.Levels[0].Mesh.Interior()}, l.Magnitude+2, l.Values != nil
		stripes, at := whole, 0
		if depth < len(divided) {
			stripes, at = divided[depth], rank
		}
		s := StageLayout{}
		var agglomerated int
		s.Stripes, agglomerated = p.Divide(stripes, points)
		s.Layout = p.LayoutOf(s.Stripes, agglomerated, at)
		s.Magnitude = magnitude // a source grows fourfold at most, as the square of the spacing
		if sourced {
			s.Values = noSource{}
		}
		sampled := newSample(finest, p.Levels[0].Mesh, initial, fixed)
		s.Rows = sampled
		if fixed != nil {
			if s.Fixed, err = p.FixedPoints(sampled); err != nil {
				return nil, fmt.Errorf("mesh %d x %d: %w", p.Levels[0].Mesh.NX, p.Levels[0].Mesh.NY, err)
			}
		}
		stages = append(stages, s)
		l = s.Layout
	}
}

// noSource is the source of a stage until Device.RestrictSource sets it.
type noSource struct{}

// ValueRow implements solver.ValueRows.
func (noSource) ValueRow(_ int, _ solver.Value, dst []byte) error {
	clear(dst)
	return nil
}

// OpenStages opens the stages on devices beside that of the finest mesh, whose field is loaded, and gives them their
// walls and sources. All ranks call it.
func OpenStages(ctx context.Context, finest Grid, layouts []StageLayout) ([]Grid, error) {
	var stages []Grid
	finer := finest
	for _, l := range layouts {
		s, err := openStage(ctx, finer, l)
		if err != nil {
			m := l.Plan.Levels[0].Mesh
			return nil, fmt.Errorf("mesh %d x %d: %w", m.NX, m.NY, err)
		}
		stages = append(stages, s)
		finer = s
	}
	return stages, nil
}

// openStage opens the stage below a finer mesh.
func openStage(ctx context.Context, finer Grid, l StageLayout) (s Grid, err error) {
	s = Grid{Layout: l.Layout, Stripes: l.Stripes, Rank: finer.Rank}
	if s.Device, err = finer.Device.Coarser(l.Layout); err != nil {
		return s, err
	}
	if l.shared() {
		s.Exchange = finer.Exchange
	}
	if err := s.Device.Load(ctx, l.Rows); err != nil {
		return s, err
	}
	if l.Values == nil {
		return s, nil
	}
	if err := finer.Device.RestrictSource(ctx, s.Device); err != nil {
		return s, fmt.Errorf("source: %w", err)
	}
	switch {
	case s.Exchange != nil:
		err = s.FillHalos(ctx, 0, RightSide)
	case finer.Exchange != nil:
		err = finer.Exchange.Gather(ctx, finer.source(s.Device, l.Plan.Levels[0].Mesh))
	}
	if err != nil {
		return s, fmt.Errorf("source: %w", err)
	}
	return s, nil
}

const (
	coarsestCycles = 3 // on the coarsest stage, whose first field is 0
	stageCycles    = 1 // on all others
)

// climb replaces the field of the device by the one to which full multigrid leads.
func (it *Iteration) climb(ctx context.Context) error {
	for i := len(it.Stages) - 1; i >= 0; i-- {
		cycles, finer := stageCycles, it.Device
		if i == len(it.Stages)-1 {
			cycles = coarsestCycles
		}
		if i > 0 {
			finer = it.Stages[i-1].Device
		}
		s := it.Stages[i]
		step := solver.Step{Kind: solver.StepStage, Number: uint64(i + 1)}
		if err := it.watch.Do(step, func() error { return it.stage(ctx, s, finer, cycles) }); err != nil {
			return fmt.Errorf("stage %d of full multigrid: %w", i+1, err)
		}
	}
	if it.CG == nil {
		return nil
	}
	if err := it.halos(ctx, 0, Unknowns); err != nil {
		return err
	}
	return it.timedCG(func() error { return it.CG.Load(ctx, nil) })
}

// stage does cycles on a stage and interpolates its field to the finer mesh.
func (it *Iteration) stage(ctx context.Context, s Grid, finer Device, cycles int) error {
	c := newVcycle(s, it.watch)
	for range cycles {
		if err := c.down(ctx); err != nil {
			return err
		}
		if err := c.up(ctx); err != nil {
			return err
		}
	}
	if err := c.halos(ctx, 0, Unknowns); err != nil {
		return err
	}
	return c.at(solver.StepInterpolate, 0, func() error { return finer.Interpolate(ctx, s.Device) })
}
