package cuda

import (
	"testing"

	"jacobi/solver"
)

// The divisions are the fastest of those tried on an H200 with 132 multiprocessors, or within 3% of it.
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
		{solver.Float32, 16, 2048, 2112, "held24_f32", 19*6 + 2*9, 16},
		// too many rows for all tiles to run at once
		{solver.Float32, 16, 2048, 2128, "sweep_f32", 132, 3 * 8},
		{solver.Float32, 16, 4096, 1280, "sweep_f32", 132, 3 * 8},
		{solver.Float32, 16, 130, 3, "held16_f32", 2, 3},
		{solver.Float32, 8, 16384, 16384, "sweep_f32", 132, 6 * 4},
		{solver.Float32, 2, 16384, 16384, "sweep_f32", 132, 24},
		{solver.Float32, 16, 2048, 2048, "held24_f32", 19*6 + 2*9, 16},
		{solver.Float32, 16, 2048, 2047, "held24_f32", 19*6 + 2*9, 16},
		{solver.Float32, 16, 2048, 1024, "held16_f32", 19*6 + 2*9, 13},
		{solver.Float32, 16, 1024, 1024, "held16_f32", 9*11 + 2*16, 8},
		{solver.Float64, 12, 1024, 1024, "held8_f64", 8*12 + 2*16, 15},
		{solver.Float64, 16, 1024, 1024, "held8_f64", 9*11 + 2*16, 16},
		{solver.Float64, 12, 1024, 1248, "held8_f64", 8*13 + 2*13, 16},
		{solver.Float64, 12, 1024, 1288, "deep_f64", 132, 3 * 3},
		{solver.Float64, 12, 16384, 16384, "deep_f64", 132, 4 * 3},
		{solver.Float64, 8, 16384, 16384, "sweep_f64", 132, 5 * 4},
	} {
		for _, s := range shapes(test.dtype) {
			p := pass{nx: int32(test.columns), outHi: int32(test.rows), countHi: int32(test.rows),
				sweeps: int32(test.sweeps)}
			if s.bare || test.sweeps > s.maxSweeps {
				continue
			}
			if d, ok := s.divide(h200, &p); ok {
				if s.name != test.kernel || d.blocks != test.blocks || d.threads != 32*test.warps {
					t.Errorf(
						"%v, %d sweeps, %d columns, %d rows: kernel %s, %d blocks of %d threads; want %s, %d of %d",
						test.dtype, test.sweeps, test.columns, test.rows, s.name, d.blocks, d.threads, test.kernel,
						test.blocks, 32*test.warps)
				}
				break
			}
		}
	}
}

// The divisions of sweep_deep.cu for meshes of few rows, which it gets where a multiprocessor cannot hold a tile, are
// among the fastest too.
func TestShares(t *testing.T) {
	all := shapes(solver.Float32)
	deep := all[len(all)-1]
	for _, test := range []struct{ columns, rows, pipes, blocks int }{
		{2048, 2048, 3, 132},
		{2048, 1024, 2, 132},
		{2048, 512, 1, 132},
		{130, 3, 1, 11}, // a strip of one group is eleven positions
	} {
		p := pass{nx: int32(test.columns), outHi: int32(test.rows), countHi: int32(test.rows), sweeps: 16}
		d, ok := deep.divide(capacity{sms: 132, shared: 227 << 10}, &p)
		if pipes := d.threads / (8 * 32); !ok || pipes != test.pipes || d.blocks != test.blocks {
			t.Errorf("%d columns, %d rows: %v, %d pipelines a block, %d blocks; want %d, %d", test.columns, test.rows,
				ok, pipes, d.blocks, test.pipes, test.blocks)
		}
	}
}

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
