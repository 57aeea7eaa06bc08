package cuda

import (
	"testing"

	"jacobi/solver"
)

// The heights that were fastest, or within 3% of it, on an H200 with 132 multiprocessors that hold three blocks of 16 sweeps.
func TestTileRows(t *testing.T) {
	float32s := shapes(solver.Float32)
	g := float32s[len(float32s)-1].geometry(16)
	for _, test := range []struct{ columns, rows, want int }{
		{16384, 16384, 1024},
		{16384, 8192, 688},
		{16384, 4096, 592},
		{16384, 2048, 416},
		{4096, 4096, 208},
		{2048, 2048, 80},
		{2048, 512, 40},
		{130, 3, 8},
	} {
		strips := (test.columns + g.columns - 1) / g.columns
		if got := tileRows(test.rows, strips, 132, 3, g); got != test.want {
			t.Errorf("%d columns, %d rows: tiles of %d rows, want %d", test.columns, test.rows, got, test.want)
		}
	}
}
