package cuda

import (
	"testing"

	"jacobi/solver"
)

// What was fastest, or within 3% of it, of what was tried on an H200 with 132 multiprocessors.
func TestDivide(t *testing.T) {
	h200 := capacity{sms: 132, shared: 227 << 10, held: 4}
	for _, test := range []struct {
		dtype         solver.DType
		sweeps        int
		columns, rows int
		kernel        string
		blocks, warps int
	}{
		{solver.Float32, 1, 16384, 16384, "once_f32", 528, 4},
		{solver.Float32, 1, 130, 3, "once_f32", 1, 4},
		{solver.Float32, 16, 16384, 16384, "sweep_f32", 132, 3 * 8},
		{solver.Float32, 16, 16384, 4096, "sweep_f32", 132, 3 * 8},
		{solver.Float32, 16, 2048, 2128, "sweep_f32", 132, 3 * 8}, // too many rows for all tiles to be under way at once
		{solver.Float32, 16, 4096, 1280, "sweep_f32", 132, 3 * 8},
		{solver.Float32, 16, 130, 3, "held16_f32", 2, 3},
		{solver.Float32, 8, 16384, 16384, "sweep_f32", 132, 6 * 4},
		{solver.Float32, 2, 16384, 16384, "sweep_f32", 132, 24},
		{solver.Float32, 16, 2048, 2048, "held24_f32", 19*6 + 2*9, 16},
		{solver.Float32, 16, 2048, 2047, "held24_f32", 19*6 + 2*9, 16},
		{solver.Float32, 16, 2048, 1024, "held16_f32", 19*6 + 2*9, 13},
		{solver.Float32, 16, 1024, 1024, "held16_f32", 9*11 + 2*16, 8},
		{solver.Float64, 12, 1024, 1024, "held8_f64", 8*12 + 2*16, 15},
		{solver.Float64, 12, 1024, 1288, "deep_f64", 132, 3 * 3},
		{solver.Float64, 12, 16384, 16384, "deep_f64", 132, 4 * 3},
		{solver.Float64, 8, 16384, 16384, "sweep_f64", 132, 5 * 4},
	} {
		for _, s := range shapes(test.dtype) {
			p := pass{nx: int32(test.columns), outHi: int32(test.rows), countHi: int32(test.rows), sweeps: int32(test.sweeps)}
			if test.sweeps > s.most {
				continue
			}
			if d, ok := s.divide(h200, &p); ok {
				if s.name != test.kernel || d.blocks != test.blocks || d.threads != 32*test.warps {
					t.Errorf("%v, %d sweeps, %d columns, %d rows: kernel %s, %d blocks of %d threads; want %s, %d of %d",
						test.dtype, test.sweeps, test.columns, test.rows, s.name, d.blocks, d.threads, test.kernel, test.blocks, 32*test.warps)
				}
				break
			}
		}
	}
}
