package multigrid

import (
	"math"
	"slices"
	"testing"

	"jacobi/solver"
)

// Cells lie between the points of the coarsest level, also where the last one of these is nearer, and at a periodic
// side, where copies lie in the first and the last cell.
func TestCellsOfALever(t *testing.T) {
	of := func(n int, w solver.Wall) []int {
		mesh := solver.Mesh{NX: n, NY: 5, DType: solver.Float64, Walls: solver.Walls{Left: w, Right: w}}
		p, err := newWeightedPlan(mesh, solver.Operator{Weighted: true, Ratio: 1})
		if err != nil {
			t.Fatal(err)
		}
		return NewLever(p).Columns()
	}
	for _, c := range []struct {
		n    int
		wall solver.Wall
		want []int
	}{
		{17, solver.Dirichlet, []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7}},
		{12, solver.Neumann, []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}},
		{13, solver.Periodic, []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6}},
	} {
		if got := of(c.n, c.wall); !slices.Equal(got, c.want) {
			t.Errorf("%d columns, walls %v: cells %v, want %v", c.n, c.wall, got, c.want)
		}
	}
	if p, err := newWeightedPlan(solver.Mesh{NX: 20000, NY: 9, DType: solver.Float64},
		solver.Operator{Weighted: true, Ratio: 1}); err != nil || NewLever(p) != nil {
		t.Errorf("%v; a Lever with more than %d cells", err, mostCells)
	}
}

// A coarsest level of one point, of diagonal 4 and without neighbours, moves by the loads of the four cells around it
// over 4. A point that is no unknown takes no load.
func TestMoveOfALever(t *testing.T) {
	mesh := solver.Mesh{NX: 4, NY: 3, DType: solver.Float64}
	p, err := newWeightedPlan(mesh, solver.Operator{Weighted: true, Ratio: 1})
	if err != nil {
		t.Fatal(err)
	}
	v := NewLever(p)
	l := Layout{Plan: p, Lever: v}
	if _, err := l.NewFactors(func(x, _ int) Point {
		if x == 2 {
			return Point{}
		}
		return Point{C: 4, In: 1, Out: 1}
	}); err != nil {
		t.Fatal(err)
	}
	if v.Cell(0) != 0 || v.Cell(1) != 3 || v.Cell(3) != 6 {
		t.Errorf("cells of rows 0 and 1 begin with %d and %d, and there are %d", v.Cell(0), v.Cell(1), v.Cell(3))
	}
	if got := v.Move([]float64{1, -2, 100, 3, -10, 100}); math.Abs(got-2) > 1e-15 {
		t.Errorf("the point moves by %g, want 8/4", got)
	}
}
