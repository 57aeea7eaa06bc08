package leveltest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// RunFull compares the ways of full multigrid between a mesh and the next coarser one with the oracle, for every third
// of the cases and those with fixed points inside the mesh.
func RunFull(t *testing.T, open Factory) {
	for _, c := range Sample(someCases()) {
		t.Run(c.String(), func(t *testing.T) {
			if err := CheckFull(t.Context(), c, open); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// CheckFull restricts the source of a case to the next coarser mesh, does a cycle there, interpolates the field to the
// mesh of the case and does a cycle there.
func CheckFull(ctx context.Context, c Case, open Factory) error {
	f, err := newFull(ctx, c, open)
	if err != nil || f == nil {
		return err
	}
	defer f.fine.close()
	if c.Source {
		if err := f.restrict(ctx); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	f.coarseOracle.Cycle()
	for _, r := range f.coarse {
		if err := r.cycle(ctx, f.coarseOracle); err != nil {
			return fmt.Errorf("coarser mesh: %w", err)
		}
		if err := r.swap(ctx, 0, multigrid.Unknowns); err != nil {
			return err
		}
	}
	for k, d := range f.fine.devices {
		if err := d.Interpolate(ctx, f.device(k)); err != nil {
			return fmt.Errorf("rank %d: interpolate: %w", k, err)
		}
	}
	f.oracle.Interpolate(f.coarseOracle)
	if err := f.fine.compare(ctx, 0, multigrid.Unknowns, f.oracle.Rows); err != nil {
		return fmt.Errorf("interpolated field: %w", err)
	}
	f.oracle.Cycle()
	return f.fine.cycle(ctx, f.oracle)
}

// full is a mesh and the next coarser one.
type full struct {
	fine                 *ranks
	coarse               []*ranks // one, or, if every rank holds the mesh as a whole, one for each rank
	oracle, coarseOracle *reference.Multigrid
	mesh                 solver.Mesh // the coarser one
}

// newFull opens both meshes; it returns nil for a mesh that is not coarsened.
func newFull(ctx context.Context, c Case, open Factory) (*full, error) {
	plan, op, values, err := c.problem()
	if err != nil {
		return nil, err
	}
	f := &full{}
	if f.oracle, err = reference.NewMultigrid(plan, op, values, c.Magnitude); err != nil {
		return nil, err
	}
	if f.fine, err = newRanks(ctx, c, plan, op, values, open); err != nil {
		return nil, err
	}
	for k := range c.Ranks {
		stages, err := multigrid.StagesOf(f.fine.layouts[k], f.fine.stripes, k, values, agglomeratedPoints)
		if err != nil || len(stages) == 0 {
			f.fine.close()
			return nil, err
		}
		if err := f.add(ctx, k, stages[0]); err != nil {
			f.fine.close()
			return nil, err
		}
	}
	return f, nil
}

// add opens the coarser mesh of rank k.
func (f *full) add(ctx context.Context, k int, s multigrid.StageLayout) (err error) {
	if k == 0 {
		op := solver.Operator{Values: s.Values}
		if s.Fixed != nil {
			op.Fixed = s.Rows.(solver.FixedRows)
		}
		f.mesh = s.Plan.Levels[0].Mesh
		if f.coarseOracle, err = reference.NewMultigrid(s.Plan, op, s.Rows, s.Magnitude); err != nil {
			return err
		}
	}
	if k == 0 || len(s.Stripes[0]) == 1 {
		f.coarse = append(f.coarse, &ranks{plan: s.Plan, stripes: s.Stripes, agglomerated: s.Agglomerated})
	}
	d, err := f.fine.devices[k].Coarser(s.Layout)
	if err != nil {
		return err
	}
	r := f.coarse[len(f.coarse)-1]
	r.devices, r.layouts = append(r.devices, d), append(r.layouts, s.Layout)
	return d.Load(ctx, s.Rows)
}

// device returns the device of the coarser mesh of rank k.
func (f *full) device(k int) multigrid.Device {
	if len(f.coarse) == 1 {
		return f.coarse[0].devices[k]
	}
	return f.coarse[k].devices[0]
}

// restrict restricts the source and gives every rank what it holds of it.
func (f *full) restrict(ctx context.Context) error {
	f.oracle.RestrictSource(f.coarseOracle)
	lo, hi := f.mesh.InteriorColumns()
	blocks := make([][]byte, len(f.fine.devices))
	for k, d := range f.fine.devices {
		if err := d.RestrictSource(ctx, f.device(k)); err != nil {
			return fmt.Errorf("rank %d: %w", k, err)
		}
		s := f.fine.layouts[k].Below()
		blocks[k] = make([]byte, s.Rows()*f.mesh.RowBytes())
		if err := f.device(k).CopyRows(ctx, 0, multigrid.RightSide, s, blocks[k]); err != nil {
			return fmt.Errorf("rank %d: %w", k, err)
		}
		want := f.coarseOracle.RightSide(0, s)
		for i := range s.Rows() {
			row := i * f.mesh.RowBytes()
			if !bytes.Equal(blocks[k][row+8*lo:row+8*hi], want[row+8*lo:row+8*hi]) {
				return fmt.Errorf("rank %d: row %d of %v differs", k, s.Lo+i, s)
			}
		}
	}
	if len(f.coarse) == 1 {
		return f.coarse[0].swap(ctx, 0, multigrid.RightSide)
	}
	for _, r := range f.coarse {
		for k, block := range blocks {
			err := r.devices[0].SetRows(ctx, 0, multigrid.RightSide, f.fine.layouts[k].Below(), block)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// cycle does a cycle and compares the field with that of the oracle after it.
func (r *ranks) cycle(ctx context.Context, oracle *reference.Multigrid) error {
	if err := r.down(ctx); err != nil {
		return err
	}
	if err := r.up(ctx); err != nil {
		return err
	}
	return r.compare(ctx, 0, multigrid.Unknowns, oracle.Rows)
}
