package multigrid

import "math"

// Lever tells how far rounding has moved the field of a weighted operator from its solution. A sweep evaluates a
// residual with about the same relative error wherever the coefficient is the same, so what it misses adds up over a
// conductor. That moves a good conductor among bad ones as a whole, and neither norms nor changes of cycles show it,
// because all cycles miss the same. Lever solves the coarsest level for the loads: what sweeps miss, added up in each
// of its cells.
type Lever struct {
	columns []int // of cells, by columns of the finest mesh
	rows    []int // of cells, by its rows
	across  int   // cells along a row
	factors *Factors
}

// mostCells is the largest number of cells of a Lever, which only long and narrow meshes exceed.
const mostCells = 4096

// NewLever returns the Lever of a weighted plan, or nil if that has too many cells. Layout.Lever takes it to the device
// that sets up the levels.
func NewLever(p *Plan) *Lever {
	last := len(p.Levels) - 1
	fine, coarse := p.Levels[0].Mesh, p.Levels[last].Mesh
	if (coarse.NX-1)*(coarse.NY-1) > mostCells {
		return nil
	}
	return &Lever{across: coarse.NX - 1,
		columns: cellsOf(fine.NX, coarse.NX, p.Levels[:last], func(l Level) Halving { return l.HalveX }),
		rows:    cellsOf(fine.NY, coarse.NY, p.Levels[:last], func(l Level) Halving { return l.HalveY })}
}

// cellsOf returns the cell in which each of n points of an axis lies: the number of the coarse point, one of m, that
// lies on it or before it.
func cellsOf(n, m int, levels []Level, axis func(Level) Halving) []int {
	cells := make([]int, n)
	for i := range cells {
		at := i
		for _, l := range levels {
			at, _ = axis(l).At(at)
		}
		cells[i] = min(max(at, 0), m-2)
	}
	return cells
}

// Ready reports whether levels are set up, which Move needs.
func (v *Lever) Ready() bool { return v != nil && v.factors != nil }

// Columns returns the columns of the cells in which the columns of the finest mesh lie.
func (v *Lever) Columns() []int { return v.columns }

// Cell returns the first cell of the row of cells in which row iy of the finest mesh lies; Cell(NY) is the number of
// cells.
func (v *Lever) Cell(iy int) int {
	if iy == len(v.rows) {
		return (v.rows[iy-1] + 1) * v.across
	}
	return v.rows[iy] * v.across
}

// Move returns by how much the loads of all cells move the solution at most. The points of a cell share its load in
// proportion to their diagonals, as the best conductor makes most of it.
func (v *Lever) Move(loads []float64) (most float64) {
	f := v.factors
	unknowns := map[[2]int]int{}
	for i, c := range f.centre {
		if x, y := f.Point(0, i); c > 0 {
			unknowns[[2]int{x, y}] = i
		}
	}
	clear(f.b)
	for cell, load := range loads {
		x, y := cell%v.across, cell/v.across
		var corners []int
		sum := 0.0
		for _, at := range [4][2]int{{x, y}, {x + 1, y}, {x, y + 1}, {x + 1, y + 1}} {
			if i, ok := unknowns[v.original(at)]; ok {
				corners, sum = append(corners, i), sum+f.centre[i]
			}
		}
		for _, i := range corners {
			f.b[i] += float64(load * (f.centre[i] / sum))
		}
	}
	f.solve(f.x, f.b)
	for _, moved := range f.x {
		most = max(most, math.Abs(moved))
	}
	return most
}

// original returns the point that a point in a periodic row or column is a copy of, or the point itself.
func (v *Lever) original(at [2]int) [2]int {
	m := v.factors.mesh
	if n := m.NX - 2; m.PeriodicColumns() {
		at[0] = (at[0]-1+n)%n + 1
	}
	if n := m.NY - 2; m.PeriodicRows() {
		at[1] = (at[1]-1+n)%n + 1
	}
	return at
}
