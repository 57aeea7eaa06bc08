package cuda

import (
	"testing"

	"jacobi/solver"
)

// What was fastest, or within 3% of it, on an H200 with 132 multiprocessors; as many pipelines as fit where few were not tried.
func TestDivide(t *testing.T) {
	for _, test := range []struct {
		dtype         solver.DType
		sweeps        int
		columns, rows int
		pipes, blocks int
	}{
		{solver.Float32, 16, 16384, 16384, 3, 132},
		{solver.Float32, 16, 16384, 4096, 3, 132},
		{solver.Float32, 16, 2048, 2048, 3, 132},
		{solver.Float32, 16, 2048, 1024, 2, 132},
		{solver.Float32, 16, 2048, 512, 1, 132},
		{solver.Float32, 16, 130, 3, 1, 11}, // a strip of one group is eleven positions
		{solver.Float32, 8, 16384, 16384, 6, 132},
		{solver.Float32, 2, 16384, 16384, 24, 132},
		{solver.Float64, 12, 16384, 16384, 4, 132},
		{solver.Float64, 8, 16384, 16384, 5, 132},
	} {
		var g geometry
		for _, s := range shapes(test.dtype) {
			if test.sweeps <= s.most {
				g = s.geometry(test.sweeps)
				break
			}
		}
		strips := (test.columns + g.columns - 1) / g.columns
		groups := (test.rows + solver.GroupRows - 1) / solver.GroupRows
		if pipes, blocks := divide(strips, groups, 132, g); pipes != test.pipes || blocks != test.blocks {
			t.Errorf("%v, %d sweeps, %d columns, %d rows: %d pipelines a block, %d blocks; want %d, %d",
				test.dtype, test.sweeps, test.columns, test.rows, pipes, blocks, test.pipes, test.blocks)
		}
	}
}
