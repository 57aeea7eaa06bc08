package problem

import (
	"math"
	"testing"

	"jacobi/solver"
)

// The least eigenvalue of 1-J is that of the slowest waves between the walls, by the formula with cosines.
func TestLeastEigenvalue(t *testing.T) {
	neumann := solver.Walls{Left: solver.Neumann, Right: solver.Neumann, Top: solver.Neumann, Bottom: solver.Neumann}
	for _, c := range []struct {
		walls solver.Walls
		op    solver.Operator
		want  float64
	}{
		{solver.Walls{}, solver.Operator{}, 1 - (math.Cos(math.Pi/16)+math.Cos(math.Pi/32))/2},
		{solver.WrapRows(true), solver.Operator{}, (1 - math.Cos(math.Pi/16)) / 2},
		{solver.Walls{Left: solver.Neumann}, solver.Operator{}, 1 - (math.Cos(math.Pi/32)+math.Cos(math.Pi/32))/2},
		{neumann, solver.Operator{Scale: 0.4999, Blend: 0.5}, 1 - 2*0.4999},
		{neumann, solver.Operator{}, (1 - math.Cos(math.Pi/64)) / 2 / (1 + math.Log(32))}, // fixed points inside
	} {
		m := solver.Mesh{NX: 17, NY: 33, DType: solver.Float64, Walls: c.walls}
		if got := leastOf(m, c.op.General()); math.Abs(got/c.want-1) > 1e-12 {
			t.Errorf("%v, %+v: %v, want %v", c.walls, c.op, got, c.want)
		}
	}
}
