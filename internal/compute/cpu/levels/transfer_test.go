package levels

import (
	"testing"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// The vectors from which between and gather permute hold all values that they need, and lie within the memory of their
// rows, for all ratios of the levels. The last vector of a row may overlap the one before it.
func TestWindowsHoldWhatIsPermuted(t *testing.T) {
	walls := []solver.Walls{{}, {Left: solver.Periodic, Right: solver.Periodic}, {Left: solver.Neumann},
		{Right: solver.Neumann}, {Left: solver.Neumann, Right: solver.Neumann}}
	for _, w := range walls {
		for fine := 2; fine <= 100; fine++ {
			for coarse := (fine + 1) / 2; coarse <= fine; coarse++ {
				checkWindows(t, w, fine, coarse)
			}
		}
	}
}

func checkWindows(t *testing.T, w solver.Walls, fine, coarse int) {
	t.Helper()
	mesh := func(intervals int) solver.Mesh {
		m := solver.Mesh{NX: intervals + 1, NY: 9, DType: solver.Float32, Walls: w}
		if m.PeriodicColumns() {
			m.NX++
		}
		return m
	}
	axis := multigrid.Axis{Fine: fine, Coarse: coarse, Low: w.Left, High: w.Right}
	from, to := mesh(fine), mesh(coarse)
	c := newColumns(axis, from, to)
	for _, lanes := range []int{8, 16} {
		check := func(what string, index []int32, lo, hi, most, behind int) {
			for x := lo; hi-lo >= lanes && x < hi; x += lanes {
				first := min(x, hi-lanes)
				if span := int(index[first+lanes-1] - index[first]); span < 0 || span > most ||
					int(index[first])+behind > 2*pad {
					t.Errorf("%s, %+v, %d to %d intervals, %d lanes, column %d: a span of %d, at most %d is held; %d "+
						"values are read behind the row, %d are there", what, w, fine, coarse, lanes, first, span, most,
						int(index[first])+behind, 2*pad)
				}
			}
		}
		lo, hi := from.InteriorColumns()
		check("between", c.coarse, lo, hi, lanes-1, lanes-(to.NX-1))
		check("gather", c.first, c.lo, c.hi, 2*lanes-1, 2*lanes+2-(from.NX-1))
	}
}
