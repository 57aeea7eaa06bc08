package multigrid

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"jacobi/solver"
)

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
