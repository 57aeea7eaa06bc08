package richardson_test

import (
	"math"
	"testing"

	"jacobi/internal/compute/richardson"
)

// Values with an error of c h^p have that error where p is an order that counts; others have a larger one.
func TestError(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name                string
		fine, half, quarter float64
		ratio, want         float64
	}{
		{"order 2", 2, 5, 17, 2, 1},
		{"order 1", 0, -1, -3, 2, 1},
		{"order 1/2", 1, math.Sqrt2, 2, 2, 1},
		{"order 2, ratio 1.5", 1, 2.25, 5.0625, 1.5, 1},
		{"order 4 counts as 2", 1, 16, 256, 2, 20},
		{"no order yet", 3, 2, 1, 2, 3},
		{"growing", 7, 3, 1, 2, 12},
		{"to and fro", 1, -1, 2, 2, 9},
		{"a little to and fro", 10, 10.5, 9.75, 2, 0.5},
		{"less to and fro", 10, 10.25, 8.75, 2, 0.75},
		{"one coarser mesh", 5, 3, nan, 2, 6},
		{"the same by chance", 1, 1, 4, 2, 0.25},
		{"exact", 5, 5, 5, 2, 0},
	} {
		got := richardson.Error(c.fine, c.half, c.quarter, c.ratio)
		if !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
		if back := richardson.Error(-c.fine, -c.half, -c.quarter, c.ratio); back != got {
			t.Errorf("%s: %g, with other signs %g", c.name, got, back)
		}
	}
}
