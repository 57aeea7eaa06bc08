package multigrid

import (
	"math"
	"testing"

	"jacobi/solver"
)

// The largest value of rows is NaN if one of them is, wherever it stands, so that no estimate hides it.
func TestLargestOfNaN(t *testing.T) {
	mesh := solver.Mesh{NX: 3, NY: 3, DType: solver.Float64}
	for at := -1; at < 9; at++ {
		values := []float64{1, -7, 2, 0, 3, -2, 5, 1, -1}
		if at >= 0 {
			values[at] = math.NaN()
		}
		got, err := largestIn(mesh, solver.Stripe{Hi: 3}, func(s solver.Stripe, dst []byte) error {
			mesh.DType.Encode(dst, values[s.Lo*3:s.Hi*3])
			return nil
		})
		if err != nil || math.IsNaN(got) != (at >= 0) || at < 0 && got != 7 {
			t.Errorf("NaN at %d: %v, %v", at, got, err)
		}
	}
}
