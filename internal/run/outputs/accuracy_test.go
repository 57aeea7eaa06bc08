package outputs

import (
	"context"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/accuracy"
	"jacobi/solver"
)

// No bound is known between Robin walls, although no point inside the mesh is fixed.
func TestWhyRobinWallsHaveNoBound(t *testing.T) {
	o := &Outputs{Options: Options{Config: configs.Default()}}
	o.Config.Solver.Method = "multigrid"
	o.Correction = func(context.Context) (float64, error) { return 0, nil }
	o.fall.Add([]float64{1, 0.1, 0.01})
	n := solver.Neumann
	walls := solver.Walls{Left: n, Right: n, Top: n, Bottom: n}
	r := o.weighted(accuracy.Run{
		Mesh:     solver.Mesh{NX: 9, NY: 9, DType: solver.Float64, Walls: walls},
		Operator: solver.Operator{Weighted: true, Ratio: 1, Contrast: 4},
		Norm:     0.01, Largest: 1,
	}, 0.01, 0, solver.Result{Iterations: 3})
	if r.Error == nil || r.AtMost != nil || r.Why != "no side has values" {
		t.Errorf("error %v, at most %v: %s", r.Error, r.AtMost, r.Why)
	}
}
