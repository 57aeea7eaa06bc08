package reference_test

import (
	"fmt"
	"math"
	"testing"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// Cycles of weighted operators converge, also beside walls that give a derivative or are periodic, where one direction
// has an odd number of intervals or waits for the other one, and with fixed points inside. Each factor is the mean one
// of six cycles without conjugate gradients. With -short there are fewer: the oracle is slow under the race detector.
func TestWeightedCyclesConverge(t *testing.T) {
	const periodic, neumann = solver.Periodic, solver.Neumann
	for i, c := range []struct {
		nx, ny int
		walls  solver.Walls
		ratio  float64
		spread float64 // coefficients lie between 1 and exp(spread)
		fixed  bool
		most   float64
	}{
		{65, 65, solver.Walls{}, 1, 0, false, 0.035},
		{100, 67, solver.Walls{Left: neumann, Right: neumann, Top: neumann}, 1, 0, false, 0.035},
		{80, 91, solver.Walls{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic}, 1, 0, false, 0.035},
		{65, 65, solver.Walls{}, 9, 0, false, 0.025},
		{66, 130, solver.Walls{Top: periodic, Bottom: periodic}, 0.1, 0, false, 0.025},
		{90, 90, solver.Walls{}, 1, 0, true, 0.04},
		{65, 65, solver.Walls{}, 1, 2, false, 0.04},
		{70, 81, solver.Walls{Left: periodic, Right: periodic, Bottom: neumann}, 1, 4, true, 0.07},
	} {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%dx%d %v ratio %v spread %v fixed %t", c.nx, c.ny, c.walls, c.ratio, c.spread, c.fixed),
			func(t *testing.T) {
				problem := leveltest.NewWeighted(leveltest.Case{
					Mesh:     solver.Mesh{NX: c.nx, NY: c.ny, DType: solver.Float64, Walls: c.walls},
					Operator: solver.Operator{Weighted: true, Ratio: c.ratio}, Source: true, Fixed: c.fixed}, c.spread)
				plan, err := multigrid.NewPlan(problem.Mesh, problem.Operator)
				if err != nil {
					t.Fatal(err)
				}
				m, err := reference.NewWeighted(plan, problem.Operator, problem.Initial, 10)
				if err != nil {
					t.Fatal(err)
				}
				norms := make([]float64, 7)
				for k := range norms {
					sum := m.Cycle()
					norms[k] = sum.Norm(10)
				}
				if factor := math.Pow(norms[6]/norms[0], 1.0/6); !(factor < c.most) {
					t.Errorf("factor %.3f, want %v at most: %.2g", factor, c.most, norms)
				}
			})
	}
}
