package multigrid

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

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

// Initial yields values of the initial field.
type Initial interface {
	// Values stores the values of row iy, 0 <= iy < NY, at the columns cols in dst. Columns of periodic walls may lie
	// one interval beyond the mesh.
	Values(iy int, cols []int, dst []float64) error
}

// sample is the walls and the fixed points of a coarser mesh, taken from those of the finest one. It implements
// solver.RowSource, with 0 at all other points, and solver.FixedRows.
type sample struct {
	finest, mesh solver.Mesh
	x, y         Axis // from the finest mesh to this one
	initial      Initial
	fixed        FixedRuns // of the finest mesh; nil for no fixed points inside
}

func newSample(finest, mesh solver.Mesh, initial Initial, fixed FixedRuns) *sample {
	left, top := finest.Walls.Left, finest.Walls.Top
	return &sample{
		finest: finest, mesh: mesh, initial: initial, fixed: fixed,
		x: Axis{Fine: solver.Intervals(finest.NX, left), Coarse: solver.Intervals(mesh.NX, left)},
		y: Axis{Fine: solver.Intervals(finest.NY, top), Coarse: solver.Intervals(mesh.NY, top)},
	}
}

// under returns the fine point at or before coarse point i, and the weight of the point after it in the linear
// interpolation at i.
func (a Axis) under(i int) (fine int, weight float64) {
	n := i * a.Fine
	fine = solver.FloorDiv(n, a.Coarse)
	return fine, float64(n-fine*a.Coarse) / float64(a.Coarse)
}

// near returns the fine points at most half a coarse interval away from coarse point i.
func (a Axis) near(i int) (lo, hi int) {
	return ceilDiv((2*i-1)*a.Fine, 2*a.Coarse), solver.FloorDiv((2*i+1)*a.Fine, 2*a.Coarse) + 1
}

// distance returns how far fine point k is from coarse point i, in units of 1/(Fine*Coarse) of the length.
func (a Axis) distance(i, k int) int {
	d := k*a.Coarse - i*a.Fine
	return max(d, -d)
}

// Row implements solver.RowSource.
func (s *sample) Row(iy int, dst []byte) error {
	clear(dst)
	row := make([]float64, s.mesh.NX)
	var err error
	if in := s.mesh.Interior(); !s.mesh.PeriodicRows() && (iy < in.Lo || iy >= in.Hi) {
		err = s.wall(iy, row)
	} else {
		err = s.sides(iy, row)
	}
	if err != nil {
		return err
	}
	for x, v := range row {
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
	}
	return nil
}

// wall sets the row of a fixed top or bottom wall, which is also one of the finest mesh.
func (s *sample) wall(iy int, row []float64) error {
	fine, _ := s.y.under(iy)
	cols, values := make([]int, 2*len(row)), make([]float64, 2*len(row))
	for x := range row {
		at, _ := s.x.under(x)
		cols[2*x], cols[2*x+1] = at, s.inColumns(at+1)
	}
	if err := s.initial.Values(fine, cols, values); err != nil {
		return err
	}
	for x := range row {
		_, weight := s.x.under(x)
		row[x] = math.FMA(weight, values[2*x+1]-values[2*x], values[2*x])
	}
	return nil
}

// inColumns returns column x, or the last one of the finest mesh if x lies beyond it.
func (s *sample) inColumns(x int) int {
	if s.finest.PeriodicColumns() {
		return x
	}
	return min(x, s.finest.NX-1)
}

// sides sets the points of fixed left and right walls, and the fixed points, of a row.
func (s *sample) sides(iy int, row []float64) error {
	fine, weight := s.y.under(iy)
	var ends [2][2]float64 // left and right, of two rows
	for k := range ends {
		y, ok := s.finest.Canonical(fine + k)
		if !ok {
			y = s.finest.NY - 1
		}
		if err := s.initial.Values(y, []int{0, s.finest.NX - 1}, ends[k][:]); err != nil {
			return err
		}
	}
	if s.mesh.Walls.Left == solver.Dirichlet {
		row[0] = math.FMA(weight, ends[1][0]-ends[0][0], ends[0][0])
	}
	if s.mesh.Walls.Right == solver.Dirichlet {
		row[len(row)-1] = math.FMA(weight, ends[1][1]-ends[0][1], ends[0][1])
	}
	return s.eachFixed(iy, func(y int, cols, from []int) error {
		values := make([]float64, len(from))
		if err := s.initial.Values(y, from, values); err != nil {
			return fmt.Errorf("fixed points of row %d: %w", y, err)
		}
		for i, x := range cols {
			row[x] = values[i]
		}
		return nil
	})
}

// FixedRow implements solver.FixedRows. A point is fixed if a fixed point of the finest mesh lies at most half an
// interval away from it in both directions: thin electrodes stay.
func (s *sample) FixedRow(iy int, dst []bool) error {
	clear(dst)
	if err := s.eachFixed(iy, func(_ int, cols, _ []int) error {
		for _, x := range cols {
			dst[x] = true
		}
		return nil
	}); err != nil {
		return err
	}
	if s.mesh.PeriodicColumns() {
		dst[0], dst[len(dst)-1] = dst[len(dst)-2], dst[1]
	}
	return nil
}

// eachFixed calls do with the fixed points of row iy, in columns cols, that take their values from columns from of row
// y of the finest mesh: the nearest fixed points there, first by rows, then by columns.
func (s *sample) eachFixed(iy int, do func(y int, cols, from []int) error) error {
	if s.fixed == nil {
		return nil
	}
	iy, _ = s.mesh.Canonical(iy)
	var rows []int
	first, end := s.y.near(iy)
	for y := first; y < end; y++ {
		if _, ok := s.finest.Canonical(y); ok {
			rows = append(rows, y)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return s.y.distance(iy, a) - s.y.distance(iy, b) })
	done := make([]bool, s.mesh.NX)
	for _, y := range rows {
		canonical, _ := s.finest.Canonical(y)
		var cols, from []int
		for x, fine := range s.nearest(s.fixed[canonical]) {
			if !done[x] {
				cols, from, done[x] = append(cols, x), append(from, fine), true
			}
		}
		if len(cols) == 0 {
			continue
		}
		if err := do(canonical, cols, from); err != nil {
			return err
		}
	}
	return nil
}

// nearest yields the columns of this mesh that lie at most half an interval from one of the runs of a row of the
// finest mesh, each with the nearest column of the runs. The column may be yielded again for the next run.
func (s *sample) nearest(runs []Columns) func(yield func(x, fine int) bool) {
	lo, hi := s.mesh.InteriorColumns()
	return func(yield func(x, fine int) bool) {
		x := lo
		for i, r := range runs {
			for ; x < hi; x++ {
				first, end := s.x.near(x)
				if end <= r.Lo {
					continue
				}
				if first >= r.Hi {
					break
				}
				middle := min(max((2*x*s.x.Fine+s.x.Coarse)/(2*s.x.Coarse), r.Lo), r.Hi-1)
				if i+1 < len(runs) && runs[i+1].Lo < end && s.x.distance(x, runs[i+1].Lo) < s.x.distance(x, middle) {
					break // the next run is nearer
				}
				if !yield(x, middle) {
					return
				}
			}
		}
	}
}
