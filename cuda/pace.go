package cuda

import "jacobi/solver"

// Figures of one H200: see "Single node" in docs/results.md. They give 1.4 us a sweep at 1024^2, 2.6 us at 2048^2 and
// 100 us at 16384^2 in float32; 1.4 to 1.6, 2.7 and 98 us were measured.
const (
	sweepSeconds = 1e-6
	points32     = 2.7e12 // points a second
	points64     = 1.55e12
)

// Pace returns the estimated time of a sweep on a GPU, without exchanges: fixed seconds, and a second for every rate
// points.
func Pace(d solver.DType) (fixed, rate float64) {
	if d == solver.Float64 {
		return sweepSeconds, points64
	}
	return sweepSeconds, points32
}
