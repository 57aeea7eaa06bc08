package cuda

import (
	"testing"

	"jacobi/solver"
)

// Meshes of float64 that fit into registers do 16 sweeps a pass, larger ones 12, or 16 with at most one norm in as many
// sweeps. Weighted points always have 16. No pass has more sweeps than the smallest stripe has rows.
func TestPreferredDepth(t *testing.T) {
	for _, test := range []struct {
		dtype         solver.DType
		columns, rows int
		every, want   int
		weighted      bool
	}{
		{solver.Float32, 16384, 16384, 1, 16, false},
		{solver.Float32, 2048, 5, 1, 5, false},
		{solver.Float64, 16384, 4096, 1, 12, false},
		{solver.Float64, 1024, 1025, 1, 12, false},
		{solver.Float64, 1024, 1024, 1, 16, false},
		{solver.Float64, 4096, 256, 1, 16, false},
		{solver.Float64, 16384, 7, 1, 7, false},
		{solver.Float64, 3, 1, 1, 1, false},
		{solver.Float64, 16384, 4096, 15, 12, false},
		{solver.Float64, 16384, 4096, 32, 16, false},
		{solver.Float64, 16384, 4096, 1, 16, true},
		{solver.Float32, 16384, 4096, 1, 16, true},
	} {
		if got := PreferredDepth(solver.Mesh{NX: test.columns, NY: 20000, DType: test.dtype},
			solver.Operator{Weighted: test.weighted}, test.rows, test.every); got != test.want {
			t.Errorf("%v, %d columns, %d rows: depth %d, want %d", test.dtype, test.columns, test.rows, got, test.want)
		}
	}
}
