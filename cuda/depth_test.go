package cuda

import (
	"testing"

	"jacobi/solver"
)

// Meshes of float64 that fit into registers do 16 sweeps a pass, larger ones 12. No pass has more sweeps than the
// smallest stripe has rows.
func TestPreferredDepth(t *testing.T) {
	for _, test := range []struct {
		dtype         solver.DType
		columns, rows int
		want          int
	}{
		{solver.Float32, 16384, 16384, 16},
		{solver.Float32, 2048, 5, 5},
		{solver.Float64, 16384, 4096, 12},
		{solver.Float64, 1024, 1025, 12},
		{solver.Float64, 1024, 1024, 16},
		{solver.Float64, 4096, 256, 16},
		{solver.Float64, 16384, 7, 7},
		{solver.Float64, 3, 1, 1},
	} {
		if got := PreferredDepth(solver.Mesh{NX: test.columns, NY: 20000, DType: test.dtype},
			test.rows); got != test.want {
			t.Errorf("%v, %d columns, %d rows: depth %d, want %d", test.dtype, test.columns, test.rows, got, test.want)
		}
	}
}
